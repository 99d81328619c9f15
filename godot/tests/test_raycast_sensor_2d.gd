extends TagTest
## RaycastSensor2D against walls at known distances.

const WALL_AT: float = 120.0


func test_a_wall_ahead_is_as_near_as_it_is() -> void:
	_wall(Vector2(WALL_AT + 10.0, 0.0), Vector2(20.0, 2000.0))
	var sensor: RaycastSensor2D = _sensor(1, 60.0)
	await frames(2)
	check_near(sensor.get_observation()[0], (200.0 - WALL_AT) / 200.0, 1e-5, "nearness")
	sensor.ray_length = 400.0
	check_near(sensor.get_observation()[0], (400.0 - WALL_AT) / 400.0, 1e-5, "longer rays")
	sensor.ray_length = 100.0
	check_equal(sensor.get_observation(), [0.0], "out of reach")


func test_the_fan_is_even_and_turns_with_the_sensor() -> void:
	_wall(Vector2(WALL_AT + 10.0, 0.0), Vector2(20.0, 4000.0))
	var sensor: RaycastSensor2D = _sensor(5, 100.0)
	await frames(2)
	for turn: float in [0.0, 25.0, -40.0]:
		sensor.rotation_degrees = turn
		var seen: Array = sensor.get_observation()
		check_equal(seen.size(), 5, "rays")
		for ray: int in 5:
			var angle: float = deg_to_rad(-40.0 + 20.0 * ray + turn)
			var distance: float = WALL_AT / cos(angle) if cos(angle) > 0.01 else INF
			var expected: float = maxf(0.0, (200.0 - distance) / 200.0)
			check_near(seen[ray], expected, 1e-4, "ray %d turned by %s" % [ray, turn])


func test_a_full_circle_has_each_direction_once() -> void:
	_wall(Vector2(0.0, -60.0), Vector2(20.0, 20.0))
	var sensor: RaycastSensor2D = _sensor(4, 360.0)
	sensor.rotation_degrees = 45.0
	await frames(2)
	# rays at -135, -45, 45 and 135 degrees, turned by 45: the first goes up
	check_near(sensor.get_observation()[0], (200.0 - 50.0) / 200.0, 1e-5, "the ray that goes up")
	check_equal(sensor.get_observation().slice(1), [0.0, 0.0, 0.0], "the others")


func test_only_what_is_asked_for_is_met() -> void:
	var wall: StaticBody2D = _wall(Vector2(WALL_AT + 10.0, 0.0), Vector2(20.0, 20.0))
	var area: Area2D = Area2D.new()
	_give_box(area, Vector2(60.0, 0.0), Vector2(20.0, 20.0))
	area.collision_layer = 4
	var sensor: RaycastSensor2D = _sensor(1, 60.0)
	await frames(2)
	check_near(sensor.get_observation()[0], 0.4, 1e-5, "bodies alone, unless asked")
	sensor.collide_with_areas = true
	check_near(sensor.get_observation()[0], 0.4, 1e-5, "an area of another layer")
	sensor.collision_mask = 5
	check_near(sensor.get_observation()[0], 0.75, 1e-5, "an area of that layer")
	sensor.collide_with_bodies = false
	sensor.collision_mask = wall.collision_layer
	check_equal(sensor.get_observation(), [0.0], "no bodies")


func test_the_body_that_carries_it_is_not_seen() -> void:
	var body: CharacterBody2D = CharacterBody2D.new()
	_give_box(body, Vector2.ZERO, Vector2(30.0, 30.0))
	var sensor: RaycastSensor2D = RaycastSensor2D.new()
	body.add_child(sensor)
	await frames(2)
	check_equal(sensor.get_observation().count(0.0), 16, "empty rays")


func test_what_was_seen_last_is_given_while_callbacks_run() -> void:
	var wall: StaticBody2D = _wall(Vector2(WALL_AT + 10.0, 0.0), Vector2(20.0, 20.0))
	var sensor: RaycastSensor2D = _sensor(2, 1.0)
	RLAddon.Tick.in_scripts = false
	check_equal(sensor.get_observation(), [0.0, 0.0], "before it ever looked")
	RLAddon.Tick.in_scripts = true
	await frames(2)
	var seen: Array = sensor.get_observation()
	check(seen[0] > 0.39, "it is seen")
	wall.free()
	await frames(1)
	RLAddon.Tick.in_scripts = false
	var last: Array = sensor.get_observation()
	RLAddon.Tick.in_scripts = true
	check_equal(last, seen, "the last one")
	last.append(7.0)
	check_equal(sensor.get_observation(), [0.0, 0.0], "afterwards it looks again")


func test_an_observation_belongs_to_who_asked() -> void:
	var sensor: RaycastSensor2D = _sensor(2, 60.0)
	await frames(1)
	sensor.get_observation().append_array([1.0, 2.0])
	RLAddon.Tick.in_scripts = false
	check_equal(sensor.get_observation(), [0.0, 0.0], "not changed by others")
	RLAddon.Tick.in_scripts = true


func test_outside_the_tree_nothing_is_seen() -> void:
	var sensor: RaycastSensor2D = RaycastSensor2D.new()
	check_equal(sensor.get_observation().count(0.0), 16, "empty rays")
	sensor.free()


func test_a_sensor_that_casts_ray_nodes_itself_sees_the_same() -> void:
	_wall(Vector2(WALL_AT + 10.0, 0.0), Vector2(20.0, 300.0))
	var own: GDScript = GDScript.new()
	own.source_code = """
extends RaycastSensor2D

func calculate_raycasts():
	var result = []
	for ray in rays:
		ray.set_enabled(true)
		ray.force_raycast_update()
		result.append(_get_raycast_distance(ray))
		ray.set_enabled(false)
	return result
"""
	own.reload()
	var nodes: RaycastSensor2D = own.new()
	add_child(nodes)
	var direct: RaycastSensor2D = _sensor(16, 360.0)
	await frames(2)
	for rotation_deg: float in [0.0, 30.0]:
		nodes.rotation_degrees = rotation_deg
		direct.rotation_degrees = rotation_deg
		check_equal(nodes.get_observation(), direct.get_observation(), "both ways")
	check(direct.get_observation().max() > 0.3, "the wall")
	check_equal(direct.get_child_count(true), 1, "nodes, if nobody asks for them")
	nodes.n_rays = 5
	check_equal(nodes.get_observation().size(), 5, "rays after a change")


func test_the_scene_has_the_rays_that_games_were_trained_with() -> void:
	const SCENE: String = "res://addons/godot_rl_agents/sensors/sensors_2d/RaycastSensor2D.tscn"
	var sensor: RaycastSensor2D = load(SCENE).instantiate()
	add_child(sensor)
	check_equal(sensor.get_observation().size(), 17, "rays")


func test_warnings_say_what_is_wrong() -> void:
	var sensor: RaycastSensor2D = _sensor(16, 360.0)
	check_equal(sensor._get_configuration_warnings().size(), 0, "warnings")
	sensor.n_rays = 0
	sensor.ray_length = 0.0
	sensor.collide_with_bodies = false
	sensor.collision_mask = 0
	check_equal(sensor._get_configuration_warnings().size(), 4, "warnings")
	check_equal(sensor.get_observation(), [], "no rays")


func _sensor(rays: int, cone_deg: float) -> RaycastSensor2D:
	var sensor: RaycastSensor2D = RaycastSensor2D.new()
	sensor.n_rays = rays
	sensor.cone_width = cone_deg
	add_child(sensor)
	return sensor


func _wall(at: Vector2, size: Vector2) -> StaticBody2D:
	var wall: StaticBody2D = StaticBody2D.new()
	_give_box(wall, at, size)
	return wall


func _give_box(owner_of_shape: CollisionObject2D, at: Vector2, size: Vector2) -> void:
	var box: CollisionShape2D = CollisionShape2D.new()
	box.shape = RectangleShape2D.new()
	box.shape.size = size
	owner_of_shape.add_child(box)
	owner_of_shape.position = at
	add_child(owner_of_shape)
