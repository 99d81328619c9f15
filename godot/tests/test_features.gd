extends TagTest
## The rules of SpaceTime's scenes for landing, several people, voxels, physics and the menu.

const SITE: PackedScene = preload("res://spacetime/landing/landing_site.tscn")
const ARENA: PackedScene = preload("res://spacetime/multi_agent/multi_agent_arena.tscn")
const WORLD: PackedScene = preload("res://spacetime/voxel/voxel_world.tscn")
const YARD: PackedScene = preload("res://spacetime/physics_stress/stress_yard.tscn")
const ROOM: PackedScene = preload("res://spacetime/ui/menu_room.tscn")
const DELTA: float = 1.0 / 90.0


func _enter_tree() -> void:
	Engine.physics_ticks_per_second = FeatureScene.TICKS_PER_SECOND


func _exit_tree() -> void:
	Engine.physics_ticks_per_second = 60
	for name: String in ["task", "walk", "leaf", "broken", "players", "start_on_way"]:
		RLAddon.ParameterStore._fixed.erase(name)
	var monitor: Node = get_node_or_null(VoxelPerformanceMonitor.PATH)
	if monitor:
		monitor.queue_free()


func test_a_spacecraft_obeys_thrust_torque_and_gravity() -> void:
	var site: LandingSite = await _island(SITE)
	var craft: Spacecraft = site.craft
	craft.place(Vector3(0.0, 500.0, 0.0), Vector3.ZERO)
	await frames(90)
	check_near(craft.linear_velocity.y, -1.62, 0.05, "a second of falling")
	craft.place(Vector3(0.0, 500.0, 0.0), Vector3.ZERO)
	craft.thrust = Vector3(0.0, 1.0, 0.0)
	await frames(90)
	check_near(craft.linear_velocity.y, 5.0 - 1.62, 0.1, "a second of full thrust")
	check_near(craft.fuel_kg, Spacecraft.FUEL_KG - 10.0, 0.2, "its fuel")
	craft.place(Vector3(0.0, 500.0, 0.0), Vector3.ZERO)
	craft.rcs = Vector2(1.0, 0.0)
	await frames(600)
	check_near(craft.tilt_rad(), Spacecraft.ASSIST_TILT_RAD, 0.05, "the assist holds full RCS")
	craft.rcs = Vector2.ZERO
	await frames(1200)
	check_near(craft.tilt_rad(), 0.0, 0.02, "and rights the craft")
	craft.fuel_kg = 0.0
	craft.thrust = Vector3(0.0, 1.0, 0.0)
	var before: float = craft.linear_velocity.y
	await frames(45)
	check(craft.linear_velocity.y < before - 0.7, "no thrust without fuel")


func test_touchdowns() -> void:
	var site: LandingSite = await _island(SITE)
	for each: Array in [
		[1.2, 0.0, "soft_landing"], [3.5, 0.0, "hard_landing"], [9.0, 0.0, "crash"]
	]:
		var told: Dictionary = await _drop(site, site.pad.position, each[0])
		check(told[each[2]], "%s m/s is a %s: %s" % [each[0], each[2], told])
		check_near(told["touchdown_mps"], each[0], 0.3, "its speed")
		check_equal(told["within_2_m"], each[2] != "crash", "on the pad")
		check_equal(told["success"], each[2] == "soft_landing", "success")
	var beside: Vector3 = site.pad.position + Vector3(120.0, 0.0, 0.0)
	beside.y = site.terrain.height_at(beside)
	var told: Dictionary = await _drop(site, beside, 1.0)
	check(not told["crash"] and not told["within_2_m"], "the ground holds it: %s" % told)
	check_near(told["pad_distance_m"], 120.0, 3.0, "the pad is far")
	site.craft.position = site.pad.position + Vector3(0.0, 1700.0, 0.0)
	await frames(3)
	check(site.agents[0].summary["lost"], "too far away")


func test_a_scripted_pilot_succeeds() -> void:
	var site: LandingSite = await _island(SITE)
	site.craft.place(site.pad.position + Vector3(40.0, 150.0, -30.0), Vector3(-5.0, -10.0, 5.0))
	frame_limit = 6000
	for _tick: int in 5000:
		var way: Vector3 = site.to_pad()
		var velocity: Vector3 = site.craft.linear_velocity
		var flat: Vector2 = 0.3 * Vector2(way.x, way.z) - Vector2(velocity.x, velocity.z)
		var sink: float = -0.6 - 0.7 * sqrt(2.4 * maxf(-way.y, 0.0))
		var lift: float = 2.0 * (sink - velocity.y) + 1.62
		site.craft.thrust = (Vector3(flat.x, maxf(lift, 0.0), flat.y) / 5.0).limit_length()
		await frames(1)
		if site.agents[0].summary:
			break
	var told: Dictionary = site.agents[0].summary
	check(told.get("success", false), "soft, and within 2 m: %s" % told)
	check(told.get("fuel_left", 0.0) > 0.8, "with 80 %% of the fuel: %s" % told)


func test_hovering_does_not_pay() -> void:
	var site: LandingSite = await _island(SITE)
	site.craft.place(site.pad.position + Vector3(0.0, 30.0, 0.0), Vector3.ZERO)
	site._potential = site._potential_now()
	site.agents[0].reward = 0.0
	site.craft.thrust = Vector3(0.0, 1.62 / 5.0, 0.0)
	await frames(180)
	check(site.agents[0].reward < 0.01, "reward %s" % site.agents[0].reward)


func test_the_pilot_walks_after_landing() -> void:
	RLAddon.ParameterStore._fixed["walk"] = 1.0
	var site: LandingSite = await _island(SITE)
	await _drop(site, site.pad.position - Vector3(5.0, 0.0, 0.0), 1.0, false)
	check(site.is_walking, "out of the craft")
	for _tick: int in 900:
		var way: Vector3 = site.to_pad().normalized()
		site.agents[0].set_action(
			{
				"thrust_x": [way.x],
				"thrust_y": [0.0],
				"thrust_z": [way.z],
				"rcs_pitch": [0.0],
				"rcs_roll": [0.0]
			}
		)
		await frames(1)
		if site.agents[0].summary:
			break
	check(site.agents[0].summary.get("walked", false), "at the beacon")
	check(not site.is_walking and not site.craft.freeze, "the next episode flies")


func test_what_a_pilot_sees() -> void:
	var site: LandingSite = await _island(SITE)
	site.craft.place(site.pad.position + Vector3(30.0, 101.2, 0.0), Vector3(5.0, -10.0, 0.0))
	var seen: Dictionary = site.agents[0].get_obs()
	check_equal(seen["obs"].size(), 14, "numbers")
	check_near(seen["obs"][0], 0.1, 0.001, "altitude")
	check_near(seen["obs"][1], 0.1, 0.001, "velocity")
	check(seen["obs"][9] < 0.0 and seen["obs"][10] < 0.0, "the pad is to the left and below")
	check_equal(seen["landing"].size(), 14, "numbers near the ground")
	check_equal(seen["landing"][7], 1.0, "fuel")
	check(seen["landing"][11] < 0.0 and seen["landing"][12] < 0.0, "faster to the left and down")


func test_guidance_leads_to_the_pad() -> void:
	var site: LandingSite = await _island(SITE)
	var above: Vector3 = site.pad.position + Vector3(0.0, Spacecraft.FEET_M, 0.0)
	for each: Array in [[Vector3(0.0, 100.0, 0.0), 20.0], [Vector3(0.0, 900.0, 0.0), 40.0]]:
		site.craft.place(above + each[0], Vector3.ZERO)
		check_near(site.off_guidance().y, -each[1] - 1.0, 0.01, "downward at %s" % each[0])
		site.craft.place(above + each[0], site.off_guidance())
		check_near(site.off_guidance().length(), 0.0, 0.01, "followed")
	site.craft.place(above + Vector3(30.0, 0.0, 40.0), Vector3.ZERO)
	var across: Vector3 = site.off_guidance() - Vector3(0.0, -1.0, 0.0)
	check_near(across.angle_to(Vector3(-3.0, 0.0, -4.0)), 0.0, 0.001, "toward the pad")
	site.craft.place(above + Vector3(0.0, 0.01, 0.0), Vector3(0.0, -1.0, 0.0))
	check(site.off_guidance().length() < 0.3, "a soft touchdown")


func test_a_floating_origin() -> void:
	var root: Node3D = Node3D.new()
	add_child(root)
	var body: RigidBody3D = RigidBody3D.new()
	body.gravity_scale = 0.0
	body.linear_damp_mode = RigidBody3D.DAMP_MODE_REPLACE
	root.add_child(body)
	var mark: Node3D = Node3D.new()
	root.add_child(mark)
	var origin: FloatingOrigin = FloatingOrigin.new()
	root.add_child(origin)
	origin.reach_m = 256.0
	origin.origin = [1.0e7, 0.0, 1.0e7]
	body.linear_velocity = Vector3(450.0, 0.0, 0.0)
	mark.position = Vector3(10.0, 0.0, 0.0)
	var start: PackedFloat64Array = origin.to_world(body.position)
	for _tick: int in 180:
		await frames(1)
		origin.follow(body, root)
		check(body.position.length() < 300.0, "near zero: %s" % body.position)
	check(origin.shifts >= 3, "%d shifts" % origin.shifts)
	check_near(body.linear_velocity.x, 450.0, 0.01, "its velocity")
	var flown: float = FloatingOrigin.distance(origin.to_world(body.position), start)
	check_near(flown, 900.0, 5.1, "10,000 km away")
	var there: PackedFloat64Array = [start[0] + 10.0, 0.0, start[2]]
	check_near(FloatingOrigin.distance(origin.to_world(mark.position), there), 0.0, 1e-3, "a mark")


func test_people_gather() -> void:
	var arena: MultiAgentArena = await _island(ARENA)
	check_equal(arena.agents.size(), 4, "people")
	var seen: Dictionary = arena.agents[0].get_obs()
	check_equal(seen["obs"].size(), 12, "numbers")
	check(seen["obs"][5] <= seen["obs"][8] and seen["obs"][8] <= seen["obs"][11], "nearest first")
	check_equal(seen["teams"], [0.0, 1.0, 1.0, 1.0], "one team")
	for _tick: int in 1500:
		for agent: MultiAgentVRController in arena.agents:
			var way: Vector3 = -agent.player_body.position
			agent.set_action({"move": [way.x, way.z]})
		arena._physics_process(DELTA)
		if arena.agents[0].summary:
			break
	check(arena.agents[0].summary["met"], "they met: %s" % arena.agents[0].summary)
	check(arena.agents[0].reward > 10.0, "reward %s" % arena.agents[0].reward)


func test_people_chase() -> void:
	RLAddon.ParameterStore._fixed["task"] = "chase"
	var arena: MultiAgentArena = await _island(ARENA)
	check_equal(
		arena.agents.map(func(a: Node) -> String: return a.policy_name).count("chaser"), 2, ""
	)
	check_equal(arena.agents[0].get_obs()["teams"][0], 1.0, "a chaser knows")
	var runner: MultiAgentVRController = arena.agents[1]
	for _tick: int in 1800:
		for agent: MultiAgentVRController in arena.agents:
			var way: Vector3 = runner.player_body.position - agent.player_body.position
			agent.set_action({"move": [way.x, way.z] if agent.role > 0 else [0.0, 0.0]})
		arena._physics_process(DELTA)
		if runner.summary:
			break
	check(runner.summary["caught"] and not runner.summary["success"], "caught: %s" % runner.summary)
	check(arena.agents[0].summary["success"], "a success of the chasers")
	check(arena.agents[0].reward > 5.0 and runner.reward < -5.0, "the reward is zero-sum")


func test_fewer_people() -> void:
	RLAddon.ParameterStore._fixed["players"] = 2.0
	var arena: MultiAgentArena = await _island(ARENA)
	var seen: Dictionary = arena.agents[0].get_obs()
	check_equal(arena.agents.size(), 2, "people")
	check_equal(seen["obs"].slice(6), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "nobody else")


func test_voxels_are_loaded_and_dropped() -> void:
	var world: VoxelWorld = await _island(WORLD)
	var terrain: VoxelTerrain = world.terrain
	check_equal(terrain.active_chunks, 9, "around the start")
	for _tick: int in 700:
		terrain.tick(world.viewer.position)
	check_equal(terrain.active_chunks, 197, "in reach")
	check_equal(terrain.queued_chunks, 0, "queued")
	var lods: Dictionary = {}
	for chunk: VoxelChunk in terrain.chunks.values():
		lods[chunk.lod] = lods.get(chunk.lod, 0) + 1
	check_equal(lods.size(), 3, "levels of detail: %s" % lods)
	var memory: int = terrain.memory_bytes
	for _tick: int in 2400:
		terrain.tick(Vector3(1608.0, 0.0, 8.0))
	check_equal(terrain.active_chunks, 197, "after going far away")
	check(terrain.memory_bytes < 3 * memory, "memory is given back")
	var sum: int = 0
	for chunk: VoxelChunk in terrain.chunks.values():
		sum += chunk.memory_bytes
	check_equal(terrain.memory_bytes, sum, "memory")


func test_voxels_collide() -> void:
	var world: VoxelWorld = await _island(WORLD)
	for place: Vector2 in [Vector2(8.5, 8.5), Vector2(-3.5, 12.5), Vector2(20.5, -7.5)]:
		world.viewer.position = Vector3(place.x, 0.0, place.y)
		world._stand()
		var ground: float = world.terrain.height(place.x, place.y)
		check_near(world.viewer.position.y, ground + 1.0, 0.01, "the ground at %s" % place)
		check(not world.is_over_hole, "solid")
	world.viewer.position = Vector3(500.0, 0.0, 0.0)
	world._stand()
	check(world.is_over_hole, "nothing is loaded there")
	check_equal(world.holes, 1, "a hole")


func test_what_is_loaded_depends_on_actions_only() -> void:
	var found: Array = []
	for _time: int in 2:
		var world: VoxelWorld = await _island(WORLD)
		world.random.seed = 3
		world.begin()
		for tick: int in 180:
			world.agent.set_action(
				{"move_direction": [1.0, 0.2], "move_speed": [1.0], "teleport_distance": [1.0]}
			)
			world._physics_process(DELTA)
		var told: Dictionary = world.describe(world.agent)
		for key: String in ["slowest_chunk_ms", "slow_chunks", "slow_ticks", "success"]:
			told.erase(key)
		found.append(told)
		world.free()
	check_equal(found[0], found[1], "twice the same")
	check(found[0]["faces_generated"] > found[0]["most_faces"], "faces of all chunks")
	check(found[0]["longest_queue"] > 100, "two seconds of running: %s" % found[0])


func test_the_monitor() -> void:
	var world: VoxelWorld = await _island(WORLD)
	var monitor: VoxelPerformanceMonitor = world.agent.perf_monitor
	await frames(4)
	check_equal(get_node(VoxelPerformanceMonitor.PATH), monitor, "where seeds expect it")
	monitor.clear()
	monitor.note_chunk(2.0)
	monitor.note_chunk(7.0)
	var told: Dictionary = monitor.get_statistics()
	check_equal(told["chunks_over_budget"], 1, "slow chunks")
	check_near(told["chunk_generation_max_ms"], 7.0, 1e-6, "slowest")
	check_near(told["chunk_generation_avg_ms"], 4.5, 1e-6, "average")
	check_equal(told["active_chunk_count"], 9, "chunks")
	check(told["physics_frame_time_ms"] > 0.0, "a tick takes time")
	var slow: Sleeper = Sleeper.new()
	add_child(slow)
	await frames(3)
	check(monitor.physics_ms > 14.0, "a tick of 15 ms: %s" % monitor.physics_ms)
	check(monitor.slow_ticks > 0, "is over budget")


func test_boxes_are_thrown_and_recycled() -> void:
	var yard: StressYard = await _island(YARD)
	yard.set_physics_process(true)
	yard.agent.set_action({"spawn": 10, "throw": [0.0, 0.0, 0.0], "particles": 1})
	await frames(12)
	check_equal(yard.bodies.size(), 10, "boxes")
	check_equal(yard.awake, 10, "awake")
	check_equal(yard.bursts, 1, "bursts of particles")
	await frames(180)
	var before: float = yard.bodies[0].position.x
	yard.agent.set_action({"spawn": 0, "throw": [1.0, 0.3, 0.0], "particles": 0})
	await frames(30)
	check(yard.bodies[0].position.x > before + 0.3, "thrown")
	check(yard.on_layers[1] > 0, "on the layer of thrown ones")
	yard.bodies[0].position = Vector3(20.0, -7.0, 0.0)
	yard.bodies[1].position = Vector3(0.0, -7.0, 0.0)
	await frames(12)
	check_equal(yard.bodies.size(), 8, "lost ones are gone")
	check_equal(yard.tunnelled, 1, "one of them through the tray")
	yard.bodies[2].linear_velocity = Vector3(0.0, 50.0, 0.0)
	await frames(7)
	check(yard.jitters > 0, "a jump without a throw")


func test_every_leaf_of_the_menu_can_be_operated() -> void:
	for leaf: int in MenuTree.leaves().size():
		RLAddon.ParameterStore._fixed["leaf"] = float(leaf)
		var room: MenuRoom = await _island(ROOM)
		check_equal(room.agent.get_obs()["obs"].size(), 37, "numbers")
		await _operate(room)
		check(room.agent.summary.get("success", false), "%s: %s" % [room.leaves[leaf], room.page])
		check(room.agent.summary.get("pointer_error_mm", 9.0) < 1.0, "the ray hits where it points")
		check(room.agent.reward > 3.0, "reward %s" % room.agent.reward)
		room.free()


func test_starts_and_potentials_of_the_menu() -> void:
	var leaf: int = MenuTree.leaves().find(["audio", 0])
	RLAddon.ParameterStore._fixed["leaf"] = float(leaf)
	var room: MenuRoom = await _island(ROOM)
	check_equal(room.page, "main", "usually")
	RLAddon.ParameterStore._fixed["start_on_way"] = 1.0
	var pages: Dictionary[String, bool] = {}
	for _time: int in 40:
		room.begin()
		pages[room.page] = true
	check_equal(pages.size(), 3, "main, settings, audio: %s" % pages)
	RLAddon.ParameterStore._fixed["leaf"] = float(MenuTree.leaves().find(["inventory", 0]))
	var held: int = 0
	for _time: int in 40:
		room.begin()
		held += 1 if room.held_slot == 0 else 0
	check(held > 5 and held < 35, "the item is held at %d of 40 starts" % held)
	room._show("inventory")
	room.pointer = Vector2(MenuRoom.place_of(0).x, MenuRoom.place_of(0).y)
	var before: float = room._potential_now()
	room.held_slot = 0
	check(room._potential_now() > before + 0.1, "taken: %s" % room._potential_now())
	room.held_slot = -1
	room._show("main")
	room.tick(DELTA)
	room.agent.reward = 0.0
	var start: Vector2 = room._aim
	for page: String in ["inventory", "main"]:
		room._aim = Vector2(0.2, 0.1)
		room.tick(DELTA)
		room._show(page)
		room.tick(DELTA)
	room._aim = start
	room.tick(DELTA)
	check_near(room.agent.reward, 0.0, 0.001, "there and back")


func test_wrong_and_dead_elements() -> void:
	RLAddon.ParameterStore._fixed["leaf"] = 1.0
	var room: MenuRoom = await _island(ROOM)
	room.hit_slot = 3
	room._press()
	check_equal(room.dead_presses, 1, "Quit is disabled")
	check(room.agent.reward < -1.9, "reward %s" % room.agent.reward)
	room.hit_slot = 0
	room._press()
	check(room.agent.summary["wrong"] and room.agent.done, "Play was not asked for")
	RLAddon.ParameterStore._fixed["broken"] = "Settings"
	room._broken = "Settings"
	room.hit_slot = 1
	room._press()
	check_equal(room.page, "main", "a broken element does nothing")
	check_equal(room.dead_presses, 1, "and is noticed")


func test_settings_persist() -> void:
	var path: String = "user://test_settings_%d.cfg" % OS.get_process_id()
	var settings: SettingsStore = SettingsStore.new()
	settings.values = {"Master volume": 0.25, "Mute": 1.0}
	check_equal(settings.save(path), OK, "saved")
	var again: SettingsStore = SettingsStore.new()
	again.read(path)
	check_equal(again.values, settings.values, "read again")
	DirAccess.remove_absolute(ProjectSettings.globalize_path(path))
	for plate: Color in MenuSlot.COLORS.values():
		check(MenuSlot.contrast(plate) > 4.5, "contrast %s" % MenuSlot.contrast(plate))


## An island whose rules the test calls, except where it says otherwise.
func _island(scene: PackedScene) -> FeatureIsland:
	var island: FeatureIsland = scene.instantiate()
	add_child(island)
	for agent: FeatureAgent in island.agents:
		agent.heuristic = "model"
	# Landing needs the real physics of every tick.
	island.set_physics_process(island is LandingSite)
	await frames(2)
	return island


## Let the craft come down on a place with a speed; returns how it landed.
func _drop(site: LandingSite, at: Vector3, speed: float, ends: bool = true) -> Dictionary:
	site.agents[0].summary = {}
	site.craft.gravity_scale = 0.0
	site.craft.place(at + Vector3(0.0, Spacecraft.FEET_M + 1.0, 0.0), Vector3(0.0, -speed, 0.0))
	for _tick: int in 240:
		await frames(1)
		if site.agents[0].summary or (not ends and site.is_walking):
			break
	return site.agents[0].summary


## Do what the menu asks for, through the ray.
func _operate(room: MenuRoom) -> void:
	for _tick: int in 1300:
		var slot: int = room.next_slot()
		var aim: Vector3 = MenuRoom.place_of(slot)
		var is_leaf: bool = room.page == room.leaves[room.goal][0]
		var kind: MenuTree.Kind = room.slots[slot].kind
		var drags: bool = is_leaf and kind in [MenuTree.Kind.SLIDER, MenuTree.Kind.ITEM]
		if room.held_slot >= 0 and kind == MenuTree.Kind.SLIDER:
			aim.x += (2.0 * room.goal_value - 1.0) * MenuRoom.SLIDER_M
		var way: Vector2 = Vector2(aim.x, aim.y) - room.pointer
		var is_there: bool = way.length() < 0.02
		var holds: bool = room.held_slot >= 0 and not is_there
		(
			room
			. agent
			. set_action(
				{
					"point_x": _speed_toward(way.x),
					"point_y": _speed_toward(way.y),
					"trigger": 1 if is_there and not drags and _tick % 2 else 0,
					"grip": 1 if holds or (drags and is_there and room.held_slot < 0) else 0,
				}
			)
		)
		room._physics_process(DELTA)
		if room.agent.summary:
			return
		await frames(1)


## The number of the speed that brings the pointer nearest to a place so many metres away; an
## action lasts one tick here.
func _speed_toward(metres: float) -> int:
	if absf(metres) < 0.012:
		return 2
	var is_far: bool = absf(metres) > 0.05
	return (4 if is_far else 3) if metres > 0.0 else (0 if is_far else 1)


class Sleeper:
	extends Node

	func _physics_process(_delta: float) -> void:
		OS.delay_msec(15)
