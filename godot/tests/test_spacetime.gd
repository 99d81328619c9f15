extends TagTest
## The rules of SpaceTime's VR scenes, without a trainer.

const ARENA: PackedScene = preload("res://spacetime/locomotion/locomotion_arena.tscn")
const NAVIGATION: Script = preload("res://spacetime/locomotion/vr_navigation_controller.gd")
const COURSE: Script = preload("res://rl_training/vr_locomotion_controller.gd")
const TRACKING: PackedScene = preload("res://spacetime/tracking/tracking_arena.tscn")
const DELTA: float = 1.0 / 90.0


func _enter_tree() -> void:
	Engine.physics_ticks_per_second = FeatureScene.TICKS_PER_SECOND


func _exit_tree() -> void:
	Engine.physics_ticks_per_second = 60


func test_a_seed_is_a_layout() -> void:
	for task: String in ["goals", "obstacles", "maze", "course"]:
		var first: LocomotionLayout = LocomotionLayout.new(task, 7)
		var again: LocomotionLayout = LocomotionLayout.new(task, 7)
		var other: LocomotionLayout = LocomotionLayout.new(task, 8)
		check_equal(again.box_places, first.box_places, "boxes of %s" % task)
		check_equal(again.goals, first.goals, "goals of %s" % task)
		check(other.goals != first.goals or other.box_places != first.box_places, "another seed")


func test_goals_are_far_and_free() -> void:
	for layout_seed: int in 60:
		for task: String in ["goals", "obstacles", "course"]:
			var layout: LocomotionLayout = LocomotionLayout.new(task, layout_seed)
			if task != "course":
				var distance: float = layout.start.distance_to(layout.goals[0])
				check(distance >= 9.999 and distance <= 30.001, "a goal is %s m away" % distance)
			for place: Vector3 in Array(layout.goals) + [layout.start]:
				check(_room(layout, place) > 1.0, "room in %s %d" % [task, layout_seed])


func test_every_maze_has_a_way() -> void:
	for layout_seed: int in 24:
		var cells: int = 2 + layout_seed % 7
		RLAddon.ParameterStore._fixed["maze_cells"] = float(cells)
		var layout: LocomotionLayout = LocomotionLayout.new("maze", layout_seed)
		check(_can_walk(layout), "maze %d of %d cells" % [layout_seed, cells])
		var straight: float = layout.start.distance_to(layout.goals[0])
		check(layout.way_m(layout.start, 0) >= straight - 0.001, "the way is no shortcut")
	RLAddon.ParameterStore._fixed.erase("maze_cells")


func test_a_rig_walks_and_turns() -> void:
	var arena: LocomotionArena = await _arena()
	arena.rig.stick = Vector2(0.0, 1.0)
	for _tick: int in 90:
		arena.rig.tick(DELTA)
	check_near(arena.rig.velocity.length(), 2.0, 0.01, "top speed")
	check_near(arena.rig.position.z, -1.75, 0.05, "meters in the first second")
	arena.rig.stick = Vector2.ZERO
	arena.rig.turn = 1.0
	for _tick: int in 90:
		arena.rig.tick(DELTA)
	check_near(rad_to_deg(arena.rig.rotation.y), -90.0, 0.01, "a second of turning right")
	arena.rig.snap_turn(PI / 6.0)
	check_near(rad_to_deg(arena.rig.rotation.y), -60.0, 0.01, "a snap turn")


## What saves Jolt its work must change nothing for the rig.
func test_a_rig_walks_as_a_moving_body_would() -> void:
	var arena: LocomotionArena = await _arena()
	arena.layout = LocomotionLayout.new("maze", 3)
	arena._place_boxes()
	var walks: Array[Array] = []
	for mode: PhysicsServer3D.BodyMode in [
		PhysicsServer3D.BODY_MODE_STATIC, PhysicsServer3D.BODY_MODE_KINEMATIC
	]:
		PhysicsServer3D.body_set_mode(arena.rig.get_rid(), mode)
		arena.rig.place(arena.layout.start, arena.layout.yaw)
		await frames(2)
		seed(5)
		var walk: Array = []
		for step: int in 60:
			arena.rig.stick = Vector2(randf_range(-1.0, 1.0), randf_range(-0.5, 1.0))
			arena.rig.turn = randf_range(-1.0, 1.0)
			for _tick: int in 4:
				arena.rig.tick(DELTA)
				await frames(1)
			walk.append([arena.rig.transform, arena.rig.velocity])
		walks.append(walk)
	check(arena.controller.collisions > 4, "%d collisions" % arena.controller.collisions)
	check_equal(walks[0], walks[1], "the walk")


func test_a_person_walks_turns_and_teleports() -> void:
	var arena: LocomotionArena = await _arena()
	arena.controller.heuristic = "human"
	_press(KEY_W, true)
	_play(arena, 45)
	check(arena.rig.position.z < -0.5, "W walks ahead: %s" % arena.rig.position)
	_press(KEY_W, false)
	_press(KEY_L, true)
	_play(arena, 9)
	check_near(rad_to_deg(arena.rig.rotation.y), -9.0, 0.1, "L turns right")
	_press(KEY_L, false)
	_press(KEY_Q, true)
	_play(arena, 9)
	check_near(rad_to_deg(arena.rig.rotation.y), 21.0, 0.1, "Q snaps left, once")
	_press(KEY_Q, false)
	var before: Vector3 = arena.rig.position
	_press(KEY_SPACE, true)
	_play(arena, 1)
	check(arena.rig.position.distance_to(before) > 2.5, "Space teleports")
	_press(KEY_SPACE, false)
	var button: InputEventMouseButton = InputEventMouseButton.new()
	button.button_index = MOUSE_BUTTON_RIGHT
	button.pressed = true
	Input.parse_input_event(button)
	# Godot measures the mouse's velocity over a tenth of a second of the clock.
	for _move: int in 12:
		OS.delay_msec(20)
		var motion: InputEventMouseMotion = InputEventMouseMotion.new()
		motion.relative = Vector2(40.0, 0.0)
		motion.screen_relative = motion.relative
		Input.parse_input_event(motion)
		await frames(1)
	var yaw: float = arena.rig.rotation.y
	_play(arena, 3)
	check(arena.rig.rotation.y < yaw, "the mouse turns right")
	button.pressed = false
	Input.parse_input_event(button)
	await frames(1)


func test_a_teleport_stops_at_walls() -> void:
	var arena: LocomotionArena = await _arena()
	check_near(arena.rig.teleport(3.0), 3.0, 0.001, "a free way")
	arena.rig.place(Vector3.ZERO, 0.0)
	await _wall(arena, Vector3(0.0, 0.0, -2.0))
	check_near(arena.rig.teleport(3.0), 1.2, 0.1, "before the wall")
	check_equal(arena.controller.collisions, 0, "collisions")


func test_a_collision_counts_once() -> void:
	var arena: LocomotionArena = await _arena()
	await _wall(arena, Vector3(0.0, 0.0, -2.0))
	arena.controller.set_action({"move": [0.0, 1.0, 0.0]})
	arena.controller.reward = 0.0
	_play(arena, 180)
	check_equal(arena.controller.collisions, 1, "collisions")
	check(arena.controller.get_info()["collision"], "it is told")
	check_near(arena.controller.reward, -1.0, 0.5, "reward")
	arena.controller.set_action({"move": [0.0, 0.0, 0.0]})
	check(not arena.controller.get_info()["collision"], "but not in the next step")


func test_a_goal_ends_the_episode() -> void:
	var arena: LocomotionArena = await _arena()
	arena.layout.goals = [Vector3(0.0, 0.0, -2.0)]
	arena._aim()
	arena.controller.set_action({"move": [0.0, 1.0, 0.0]})
	arena.controller.reward = 0.0
	_play(arena, 90)
	var info: Dictionary = arena.controller.get_info()
	check(arena.controller.done, "done")
	check(info["goal_reached"] and info["success"] and not info["timeout"], "told: %s" % info)
	check(arena.controller.reward > 10.0, "reward %s" % arena.controller.reward)
	check_near(arena.controller.last_named["goal_distance"], 1.0, 0.05, "the last observation")
	check(arena.to_goal().length() > 9.9, "the next goal is far away")


func test_a_fall_ends_the_episode() -> void:
	var arena: LocomotionArena = await _arena()
	arena.rig.position = Vector3(40.0, -9.9, 0.0)
	arena.controller.reward = 0.0
	_play(arena, 15)
	check(arena.controller.done, "done")
	check(arena.controller.get_info()["fell"], "it fell")
	check(arena.controller.reward < -4.0, "reward %s" % arena.controller.reward)
	check(arena.rig.position.y > -1.0, "it stands again")


func test_time_is_limited() -> void:
	var arena: LocomotionArena = await _arena()
	arena.limit_ticks = 12
	_play(arena, 11)
	check(not arena.controller.truncated, "not yet")
	_play(arena, 1)
	check(arena.controller.truncated and not arena.controller.done, "truncated")
	check(arena.controller.get_info()["timeout"], "it is told")


func test_pacing_to_and_fro_does_not_pay() -> void:
	var arena: LocomotionArena = await _arena()
	arena.layout.goals = [Vector3(0.0, 0.0, -20.0)]
	arena._aim()
	arena.controller.reward = 0.0
	_play(arena, 90)
	check_near(arena.controller.reward, 0.0, 0.001, "standing still")
	for round_trip: int in 6:
		arena.controller.set_action({"move": [0.0, 1.0 if round_trip % 2 == 0 else -1.0, 0.0]})
		_play(arena, 60)
	check(arena.controller.reward < 0.6, "reward %s" % arena.controller.reward)


func test_comfort() -> void:
	var comfort: VRComfortSystem = VRComfortSystem.new()
	add_child(comfort)
	for _tick: int in 45:
		comfort.tick(Vector3(2.0, 0.0, 0.0), deg_to_rad(30.0), DELTA)
	check_equal(comfort.activations, 0, "a gentle start and turn")
	for _tick: int in 45:
		comfort.tick(Vector3(8.0, 0.0, 0.0), 0.0, DELTA)
	check_equal(comfort.activations, 1, "a hard start")
	check(comfort.vignette_intensity > 0.5, "intensity %s" % comfort.vignette_intensity)
	for _tick: int in 180:
		comfort.tick(Vector3.ZERO, 0.0, DELTA)
	check_equal(comfort.vignette_intensity, 0.0, "it opens again")
	check_equal(VRComfortSystem.score(0.0, 0.5, 0.0), 1.0, "slow")
	check_near(VRComfortSystem.score(-0.8, 0.85, 0.4), 0.3, 1e-6, "fast, turning, tilted")


func test_discrete_actions() -> void:
	var arena: LocomotionArena = await _arena()
	arena.controller.set_action({"choice": 0})
	_play(arena, 6)
	check_near(arena.rig.position.z, -1.0, 0.01, "a meter forward")
	check_near(arena.rig.velocity.length(), 0.0, 0.2, "then it stands")
	arena.controller.set_action({"choice": 4})
	check_near(rad_to_deg(arena.rig.rotation.y), 45.0, 0.01, "turn left")
	arena.controller.set_action({"choice": 6})
	_play(arena, 6)
	check_near(arena.rig.position.z, -1.0, 0.02, "idle")


func test_what_is_seen() -> void:
	var arena: LocomotionArena = await _arena()
	arena.layout.goals = [Vector3(-3.0, 0.0, -4.0)]
	await _wall(arena, Vector3(0.0, 0.0, -2.0))
	var seen: Dictionary = arena.controller.get_named_obs()
	var flat: Array = arena.controller.get_obs()["obs"]
	check_equal(flat.size(), 48, "numbers")
	check_near(flat[44], seen["goal_distance"], 1e-6, "the goal's distance is number 45")
	check_near(seen["goal_distance"], 5.0, 0.001, "distance")
	check_near(seen["ray_sensors"][0], 1.5, 0.01, "ahead is the wall")
	check_equal(seen["ray_sensors"][8], 5.0, "behind is nothing")
	arena.rig.snap_turn(PI / 2.0)
	seen = arena.controller.get_named_obs()
	check_near(seen["goal_position"][0], 4.0, 0.001, "to the right of the head")
	check_near(seen["goal_position"][2], -3.0, 0.001, "ahead of the head")
	check_near(seen["ray_sensors"][12], 1.5, 0.01, "the wall is to the right")


func test_the_course() -> void:
	var arena: LocomotionArena = await _arena("course")
	var controller: RigController = arena.controller
	check_equal(controller.get_obs()["obs"].size(), 12, "numbers")
	check_equal(controller.get_obs()["comfort"], [0.0, 0.0, 0.0, 0.0], "at rest")
	arena.rig.comfort.felt_acceleration = Vector3(0.0, 0.0, 3.0).rotated(
		Vector3.UP, arena.rig.rotation.y
	)
	check_near(controller.get_obs()["comfort"][1], 1.0, 0.001, "where the vignette begins")
	controller.reward = 0.0
	controller.note_event(&"vignette")
	check_near(controller.reward, -0.5, 0.001, "a vignette")
	check_equal(arena.limit_ticks, 5400, "60 s")
	check(controller.is_success({"goal_reached": true}), "clean")
	arena.rig.comfort.activations = 1
	check(not controller.is_success({"goal_reached": true}), "with a vignette")
	arena.rig.comfort.activations = 0
	controller.collisions = 1
	check(not controller.is_success({"goal_reached": true}), "with a collision")
	controller.set_action({"move_x": [0.0], "move_z": [0.0], "rotate": [1.0], "teleport": [1.0]})
	check_near(rad_to_deg(arena.rig.rotation.y), -30.0, 0.01, "a snap turn")
	check_near(Vector2(arena.rig.position.x, arena.rig.position.z).length(), 3.0, 0.01, "teleport")
	controller.set_action({"move_x": [0.0], "move_z": [0.0], "rotate": [1.0], "teleport": [1.0]})
	check_near(rad_to_deg(arena.rig.rotation.y), -30.0, 0.01, "not again at once")
	check_equal(controller.get_obs()["comfort"].slice(2), [1.0, 1.0], "waits")


func test_tracking() -> void:
	var arena: TrackingArena = TRACKING.instantiate()
	add_child(arena)
	arena.set_physics_process(false)
	arena.controller.heuristic = "model"
	await frames(2)
	for _tick: int in 600:
		var left: Vector3 = arena.way(0).limit_length(1.0)
		var right: Vector3 = arena.way(1).limit_length(1.0)
		arena.controller.set_action(
			{"left": [left.x, left.y, left.z], "right": [right.x, right.y, right.z]}
		)
		arena._physics_process(DELTA)
	check(arena.touches >= 4, "%d touches" % arena.touches)
	check_near(arena.worst_error_m, 0.0, 0.001, "the XR nodes are where the mock says")
	check_equal(arena.controller.get_obs()["obs"].size(), 21, "numbers")


func test_the_whitelist() -> void:
	var list: SceneWhitelist = SceneWhitelist.new("development")
	check(list.allows("res://scenes/features/vr_locomotion_test.tscn"), "a feature scene")
	for path: String in [
		"res://scenes/Main.tscn",
		"res://scenes/features/../Main.tscn",
		"res://scenes/features/debug/x.tscn",
		"res://scenes/features/x_private.tscn",
		"res://scenes/featuresx/a.tscn",
		"user://scenes/features/a.tscn",
		"/etc/passwd",
		"",
	]:
		check(not list.allows(path), path)
	allow_error("cannot be read")
	check(not SceneWhitelist.new("test", "res://none.json").allows("res://a.tscn"), "no file")


func _arena(task: String = "goals") -> LocomotionArena:
	var arena: LocomotionArena = ARENA.instantiate()
	arena.task = task
	arena.get_node(^"Rig/AIController3D").set_script(COURSE if task == "course" else NAVIGATION)
	add_child(arena)
	arena.set_physics_process(false)
	arena.controller.heuristic = "model"
	arena.layout.box_places = []
	arena._place_boxes()
	arena.rig.place(Vector3.ZERO, 0.0)
	await frames(2)
	return arena


## Put a wall of 4 × 3 × 1 m there.
func _wall(arena: LocomotionArena, place: Vector3) -> void:
	arena.layout.box_places = [place]
	arena.layout.box_sizes = [Vector3(4.0, 3.0, 1.0)]
	arena._place_boxes()
	await frames(2)


func _press(key: Key, is_pressed: bool) -> void:
	var event: InputEventKey = InputEventKey.new()
	event.physical_keycode = key
	event.pressed = is_pressed
	Input.parse_input_event(event)
	Input.flush_buffered_events()


func _play(arena: LocomotionArena, ticks: int) -> void:
	for _tick: int in ticks:
		arena._physics_process(DELTA)


## The distance from a place to the nearest box.
func _room(layout: LocomotionLayout, place: Vector3) -> float:
	var least: float = INF
	for i: int in layout.box_places.size():
		var away: Vector3 = (place - layout.box_places[i]).abs() - 0.5 * layout.box_sizes[i]
		least = minf(least, Vector2(maxf(away.x, 0.0), maxf(away.z, 0.0)).length())
	return least


## Whether a rig can walk from the start to the goal, by flooding a fine grid.
func _can_walk(layout: LocomotionLayout) -> bool:
	var step: float = 0.4
	var goal: Vector3 = layout.goals[0]
	var seen: Dictionary[Vector2i, bool] = {Vector2i.ZERO: true}
	var queue: Array[Vector2i] = [Vector2i.ZERO]
	while queue:
		var here: Vector2i = queue.pop_back()
		var place: Vector3 = layout.start + Vector3(here.x, 0.0, here.y) * step
		if place.distance_to(goal) < 1.0:
			return true
		for side: Vector2i in LocomotionLayout.SIDES:
			var next: Vector2i = here + side
			var there: Vector3 = layout.start + Vector3(next.x, 0.0, next.y) * step
			if next not in seen and there.length() < 40.0 and _room(layout, there) > 0.31:
				seen[next] = true
				queue.append(next)
	return false
