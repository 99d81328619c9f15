extends TagTest
## PositionSensor2D and PositionSensor3D, and the rewards for approaching.


func test_places_are_relative_scaled_and_clipped_2d() -> void:
	var near: Node2D = _node_2d(Vector2(110.0, 40.0))
	var far: Node2D = _node_2d(Vector2(100.0, 1000.0))
	var sensor: PositionSensor2D = _sensor_2d([near, far])
	sensor.position = Vector2(100.0, 0.0)
	var seen: Array[float] = sensor.get_observation()
	for index: int in 4:
		check_near(seen[index], [0.05, 0.2, 0.0, 1.0][index], 1e-6, "number %d" % index)
	sensor.include_x = false
	check_equal(sensor.get_observation(), [seen[1], seen[3]] as Array[float], "without x")


func test_places_turn_with_the_sensor_2d() -> void:
	var sensor: PositionSensor2D = _sensor_2d([_node_2d(Vector2(0.0, 100.0))])
	sensor.rotation_degrees = 90.0
	check_near(sensor.get_observation()[0], 0.5, 1e-6, "ahead")
	check_near(sensor.get_observation()[1], 0.0, 1e-6, "aside")


func test_direction_and_distance_apart_2d() -> void:
	var sensor: PositionSensor2D = _sensor_2d(
		[_node_2d(Vector2(30.0, 40.0)), _node_2d(Vector2(-999.0, 0.0))]
	)
	sensor.use_separate_direction = true
	var seen: Array[float] = sensor.get_observation()
	for index: int in 6:
		check_near(seen[index], [0.6, 0.8, 0.25, -1.0, 0.0, 1.0][index], 1e-6, "number %d" % index)


func test_an_object_that_is_gone_gives_zeros() -> void:
	var flat_things: Array[Node2D] = [_node_2d(Vector2.ONE), _node_2d(Vector2.ONE), null]
	var flat: PositionSensor2D = _sensor_2d(flat_things)
	var things: Array[Node3D] = [_node_3d(Vector3.ONE), _node_3d(Vector3.ONE), null]
	var sensor: PositionSensor3D = _sensor_3d(things)
	remove_child(flat_things[1])
	remove_child(things[1])
	flat_things[0].free()
	things[0].free()
	check_equal(flat.get_observation().count(0.0), 6, "zeros in 2D")
	check_equal(sensor.get_observation().count(0.0), 9, "zeros in 3D")
	flat_things[1].free()
	things[1].free()


func test_places_are_relative_scaled_and_clipped_3d() -> void:
	var sensor: PositionSensor3D = _sensor_3d(
		[_node_3d(Vector3(1.0, 2.0, -3.0)), _node_3d(Vector3(0.0, 0.0, 99.0))]
	)
	sensor.position = Vector3(0.0, 1.0, 0.0)
	sensor.max_distance = 4.0
	var seen: Array[float] = sensor.get_observation()
	for index: int in 3:
		check_near(seen[index], [0.25, 0.25, -0.75][index], 1e-6, "number %d" % index)
	check_near(Vector3(seen[3], seen[4], seen[5]).length(), 1.0, 1e-6, "length of the far one")
	sensor.include_y = false
	check_equal(sensor.get_observation().size(), 4, "numbers without y")
	sensor.rotation_degrees.y = 90.0
	check_near(sensor.get_observation()[0], 0.75, 1e-6, "turned with the sensor")


func test_direction_and_distance_apart_3d() -> void:
	var sensor: PositionSensor3D = _sensor_3d([_node_3d(Vector3(2.0, 3.0, 6.0))])
	sensor.max_distance = 14.0
	sensor.use_separate_direction = true
	var seen: Array[float] = sensor.get_observation()
	for index: int in 4:
		var expected: float = [2.0 / 7.0, 3.0 / 7.0, 6.0 / 7.0, 0.5][index]
		check_near(seen[index], expected, 1e-6, "number %d" % index)


func test_warnings_say_what_is_wrong() -> void:
	check_equal(_sensor_2d([])._get_configuration_warnings().size(), 1, "nothing to see")
	check_equal(_sensor_2d([null])._get_configuration_warnings().size(), 1, "an empty place")
	var sensor: PositionSensor3D = _sensor_3d([_node_3d(Vector3.ONE)])
	check_equal(sensor._get_configuration_warnings().size(), 0, "warnings")
	var reward: ApproachNodeReward3D = ApproachNodeReward3D.new()
	check_equal(reward._get_configuration_warnings().size(), 1, "nothing to approach")
	reward.target_node = sensor
	check_equal(reward._get_configuration_warnings().size(), 0, "warnings")
	reward.free()


func test_only_a_new_best_distance_pays() -> void:
	var flat: ApproachNodeReward2D = ApproachNodeReward2D.new()
	flat.target_node = _node_2d(Vector2(10.0, 0.0))
	flat.reward_scale = 0.5
	var deep: ApproachNodeReward3D = ApproachNodeReward3D.new()
	deep.target_node = _node_3d(Vector3(10.0, 0.0, 0.0))
	deep.reward_scale = 0.5
	add_child(flat)
	add_child(deep)
	var paid: Array[float] = []
	for x: float in [0.0, 4.0, 2.0, 5.0, 10.0, 12.0, 10.0]:
		flat.position.x = x
		deep.position.x = x
		paid.append(flat.get_reward())
		check_equal(deep.get_reward(), paid[-1], "3D as 2D at %s" % x)
	check_equal(paid, [0.0, 2.0, 0.0, 0.5, 2.5, 0.0, 0.0] as Array[float], "paid")
	for reward: Node in [flat, deep]:
		reward.reset()
		check_equal(reward.get_reward(), 0.0, "the first look of an episode")
		reward.target_node.free()
		check_equal(reward.get_reward(), 0.0, "without a target")


func test_games_may_extend_without_types() -> void:
	for base: String in ["ISensor2D", "ISensor3D", "RewardFunction2D", "RewardFunction3D"]:
		var own: GDScript = GDScript.new()
		own.source_code = (
			"""
extends %s

func get_observation():
	return {"hits": [1]}

func get_reward():
	return 3

func reset():
	return
"""
			% base
		)
		check_equal(own.reload(), OK, base)
		var node: Node = own.new()
		node.reset()
		check_equal(int(node.get_reward()), 3, "reward of " + base)
		check_equal(node.get_observation(), {"hits": [1]}, "observation of " + base)
		node.free()


func _sensor_2d(things: Array[Node2D]) -> PositionSensor2D:
	var sensor: PositionSensor2D = PositionSensor2D.new()
	sensor.objects_to_observe = things
	sensor.max_distance = 200.0
	add_child(sensor)
	return sensor


func _sensor_3d(things: Array[Node3D]) -> PositionSensor3D:
	var sensor: PositionSensor3D = PositionSensor3D.new()
	sensor.objects_to_observe = things
	add_child(sensor)
	return sensor


func _node_2d(at: Vector2) -> Node2D:
	var node: Node2D = Node2D.new()
	node.position = at
	add_child(node)
	return node


func _node_3d(at: Vector3) -> Node3D:
	var node: Node3D = Node3D.new()
	node.position = at
	add_child(node)
	return node
