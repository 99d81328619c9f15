extends TagTest
## RayCastSensor3D against boxes at known distances.

const SCENE: String = "res://addons/godot_rl_agents/sensors/sensors_3d/RaycastSensor3D.tscn"
## As the editor saved it with the addon of Godot RL Agents.
const OLD_SCENE: String = """[gd_scene load_steps=2 format=3]

[ext_resource type="PackedScene" path="%s" id="1"]

[node name="Robot" type="Node3D"]

[node name="RaycastSensor3D" parent="." instance=ExtResource("1")]
collision_mask = 3
n_rays_height = 1.0
ray_length = 20.0
class_sensor = true

[node name="node_0 0" type="RayCast3D" parent="RaycastSensor3D"]
target_position = Vector3(-7.39, 0, 17.8)

[node name="node_1 0" type="RayCast3D" parent="RaycastSensor3D"]
target_position = Vector3(-2.52, 0, 19.1)
"""
const WALL_AT: float = 4.0


func test_a_wall_ahead_is_as_near_as_it_is() -> void:
	_box(Vector3(0.0, 0.0, WALL_AT + 0.5), Vector3(100.0, 100.0, 1.0))
	var sensor: RayCastSensor3D = _sensor(5, 3)
	await frames(2)
	var seen: Array = sensor.get_observation()
	check_equal(seen.size(), 15, "rays")
	for column: int in 5:
		for row: int in 3:
			var aside: float = deg_to_rad(-24.0 + 12.0 * column)
			var up: float = deg_to_rad(-20.0 + 20.0 * row)
			var expected: float = 1.0 - WALL_AT / cos(aside) / cos(up) / 10.0
			check_near(seen[column * 3 + row], expected, 1e-5, "ray %d, %d" % [column, row])


func test_columns_go_from_left_to_right_and_rows_from_low_to_high() -> void:
	_box(Vector3(2.0, 2.0, 4.0), Vector3.ONE)
	var sensor: RayCastSensor3D = _sensor(3, 3)
	sensor.cone_width = 80.0
	sensor.cone_height = 72.0
	await frames(2)
	var seen: Array = sensor.get_observation()
	check(seen[8] > 0.0, "the highest ray of the column towards +x meets the box")
	check_equal(seen.count(0.0), 8, "rays that meet nothing")


func test_it_turns_with_its_parent() -> void:
	_box(Vector3(-5.0, 0.0, 0.0), Vector3.ONE)
	var parent: Node3D = Node3D.new()
	add_child(parent)
	var sensor: RayCastSensor3D = _sensor(1, 1)
	sensor.reparent(parent)
	await frames(2)
	check_equal(sensor.get_observation(), [0.0], "ahead")
	parent.rotation_degrees.y = -90.0
	check_near(sensor.get_observation()[0], 1.0 - 4.5 / 10.0, 1e-5, "to the right")


func test_classes_follow_each_distance() -> void:
	_box(Vector3(-2.0, 0.0, 4.0), Vector3.ONE).collision_layer = 1
	_box(Vector3(2.0, 0.0, 4.0), Vector3.ONE).collision_layer = 6
	var area: Area3D = Area3D.new()
	_give_box(area, Vector3(0.0, 0.0, 5.0), Vector3(0.5, 0.5, 0.5))
	area.collision_layer = 4
	var sensor: RayCastSensor3D = _sensor(3, 1)
	sensor.cone_width = 3.0 * rad_to_deg(atan2(2.0, 4.0))
	sensor.class_sensor = true
	sensor.collision_mask = 7
	sensor.boolean_class_mask = 4
	await frames(2)
	var seen: Array = sensor.get_observation()
	check_equal([seen[1], seen[2], seen[3], seen[5]], [0.0, 0.0, 0.0, 1.0], "bodies")
	check(seen[0] > 0.5 and seen[4] > 0.5, "both boxes are met")
	sensor.collide_with_areas = true
	seen = sensor.get_observation()
	check_near(seen[2], 1.0 - 4.75 / 10.0, 1e-5, "the area")
	check_equal([seen[1], seen[3], seen[5]], [0.0, 1.0, 1.0], "bodies and areas")
	sensor.collision_mask = 3
	check_equal(sensor.get_observation()[5], 0.0, "a class outside the collision mask")
	check_equal(sensor.get_observation().map(typeof).count(TYPE_FLOAT), 6, "floats")


## Nodes that make bodies without having a layer that scripts can ask for.
func test_the_class_of_a_body_of_the_server_is_known() -> void:
	var body: RID = PhysicsServer3D.body_create()
	var shape: RID = PhysicsServer3D.box_shape_create()
	PhysicsServer3D.shape_set_data(shape, 0.5 * Vector3.ONE)
	PhysicsServer3D.body_add_shape(body, shape)
	PhysicsServer3D.body_set_mode(body, PhysicsServer3D.BODY_MODE_STATIC)
	PhysicsServer3D.body_set_collision_layer(body, 1)
	PhysicsServer3D.body_set_space(body, get_viewport().find_world_3d().space)
	var place: Transform3D = Transform3D(Basis.IDENTITY, Vector3(0.0, 0.0, 3.5))
	PhysicsServer3D.body_set_state(body, PhysicsServer3D.BODY_STATE_TRANSFORM, place)
	var sensor: RayCastSensor3D = _sensor(1, 1)
	sensor.class_sensor = true
	await frames(2)
	check_near(sensor.get_observation()[0], 0.7, 1e-5, "nearness")
	check_equal(sensor.get_observation()[1], 1.0, "class")
	PhysicsServer3D.free_rid(body)
	PhysicsServer3D.free_rid(shape)


func test_the_ball_that_carries_it_is_not_seen() -> void:
	var ball: RigidBody3D = RigidBody3D.new()
	ball.gravity_scale = 0.0
	var shape: CollisionShape3D = CollisionShape3D.new()
	shape.shape = SphereShape3D.new()
	ball.add_child(shape)
	var sensor: RayCastSensor3D = RayCastSensor3D.new()
	ball.add_child(sensor)
	add_child(ball)
	await frames(2)
	check_equal(sensor.get_observation().count(0.0), 36, "empty rays")


## Asked from a signal of the physics, as Sync allows for.
func test_what_was_seen_last_is_given_while_callbacks_run() -> void:
	var wall: StaticBody3D = _box(Vector3(0.0, 0.0, WALL_AT + 0.5), Vector3(2.0, 2.0, 1.0))
	var sensor: RayCastSensor3D = _sensor(1, 1)
	await frames(2)
	var before: Array = sensor.get_observation()
	check_near(before[0], 1.0 - WALL_AT / 10.0, 1e-5, "nearness")
	wall.position.z += 2.0
	var area: Area3D = Area3D.new()
	var told: Array = []
	area.body_entered.connect(
		func(_body: Node3D) -> void:
			RLAddon.Tick.in_scripts = false
			told.append(sensor.get_observation())
			RLAddon.Tick.in_scripts = true
	)
	_give_box(area, Vector3(20.0, 0.0, 0.0), Vector3.ONE)
	var visitor: AnimatableBody3D = AnimatableBody3D.new()
	_give_box(visitor, Vector3(20.0, 0.0, 0.0), Vector3.ONE)
	await frames(5)
	check_equal(told, [before], "in the callback")
	check_near(sensor.get_observation()[0], 1.0 - (WALL_AT + 2.0) / 10.0, 1e-5, "in a script")


func test_a_sensor_that_casts_ray_nodes_itself_sees_the_same() -> void:
	_box(Vector3(1.0, 0.5, 4.0), Vector3(2.0, 2.0, 2.0))
	var own: GDScript = GDScript.new()
	own.source_code = """
extends RayCastSensor3D

func calculate_raycasts() -> Array:
	var result = []
	for ray in rays:
		ray.set_enabled(true)
		ray.force_raycast_update()
		result.append(_get_raycast_distance(ray))
		ray.set_enabled(false)
	return result
"""
	own.reload()
	var nodes: RayCastSensor3D = own.new()
	add_child(nodes)
	var direct: RayCastSensor3D = _sensor(6, 6)
	await frames(2)
	check_equal(nodes.get_observation(), direct.get_observation(), "both ways")
	check(direct.get_observation().max() > 0.5, "the box")


func test_a_scene_made_with_the_older_addon_works() -> void:
	var file: FileAccess = FileAccess.open("user://old_robot.tscn", FileAccess.WRITE)
	file.store_string(OLD_SCENE % SCENE)
	file.close()
	var robot: Node3D = load("user://old_robot.tscn").instantiate()
	DirAccess.remove_absolute("user://old_robot.tscn")
	add_child(robot)
	_box(Vector3(0.0, 0.0, WALL_AT + 0.5), Vector3(100.0, 100.0, 1.0))
	await frames(2)
	var sensor: RayCastSensor3D = robot.get_child(0)
	check_equal(sensor.get_child_count(), 0, "saved rays")
	var seen: Array = sensor.get_observation()
	check_equal(seen.size(), 8, "numbers of 4 rays")
	check_near(seen[2], 1.0 - WALL_AT / cos(deg_to_rad(7.5)) / 20.0, 1e-5, "nearness")
	check_equal(seen[3], 1.0, "class")


func test_rays_that_an_old_scene_has_saved_are_removed() -> void:
	var sensor: RayCastSensor3D = load(SCENE).instantiate()
	for name_of_ray: String in ["node_0 0", "node_1 0"]:
		var saved: RayCast3D = RayCast3D.new()
		saved.name = name_of_ray
		sensor.add_child(saved)
	var own: RayCast3D = RayCast3D.new()
	own.name = "Laser"
	sensor.add_child(own)
	add_child(sensor)
	await frames(2)
	check_equal(sensor.get_children(), [own] as Array[Node], "children that stay")
	check_equal(sensor.get_observation().size(), 8, "rays of the scene")
	check_equal(sensor.ray_length, 11.0, "their length")


func test_warnings_say_what_is_wrong() -> void:
	var sensor: RayCastSensor3D = _sensor(6, 6)
	check_equal(sensor._get_configuration_warnings().size(), 0, "warnings")
	sensor.n_rays_height = 0
	sensor.ray_length = 0.0
	sensor.collide_with_bodies = false
	sensor.collision_mask = 0
	sensor.class_sensor = true
	check_equal(sensor._get_configuration_warnings().size(), 5, "warnings")
	check_equal(sensor.get_observation(), [], "no rays")


func _sensor(width: int, height: int) -> RayCastSensor3D:
	var sensor: RayCastSensor3D = RayCastSensor3D.new()
	sensor.n_rays_width = width
	sensor.n_rays_height = height
	add_child(sensor)
	return sensor


func _box(at: Vector3, size: Vector3) -> StaticBody3D:
	var body: StaticBody3D = StaticBody3D.new()
	_give_box(body, at, size)
	return body


func _give_box(owner_of_shape: CollisionObject3D, at: Vector3, size: Vector3) -> void:
	var box: CollisionShape3D = CollisionShape3D.new()
	box.shape = BoxShape3D.new()
	box.shape.size = size
	owner_of_shape.add_child(box)
	owner_of_shape.position = at
	add_child(owner_of_shape)
