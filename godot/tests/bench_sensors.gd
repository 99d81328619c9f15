extends SceneTree
## How long a look through rays takes: the addon's sensors beside the same rays as RayCast nodes,
## and as questions to the physics space.
##
## Run as `godot --headless --path godot --fixed-fps 60 -s res://tests/bench_sensors.gd`. Prints one
## JSON object: microseconds a look, of each way the fastest round. The ways take turns.

const BOXES: int = 40
const ROUNDS: int = 40
const LOOKS: int = 200
const SEED: int = 7


func _initialize() -> void:
	_run()


func _run() -> void:
	var random: RandomNumberGenerator = RandomNumberGenerator.new()
	random.seed = SEED
	for _box: int in BOXES:
		_add_box_2d(Vector2.from_angle(random.randf() * TAU) * random.randf_range(60.0, 250.0))
		_add_box_3d(
			Vector3.BACK.rotated(Vector3.UP, random.randf() * TAU) * random.randf_range(3, 12)
		)
	for _frame: int in 3:
		await physics_frame
	var table: Dictionary = {}
	for count: int in [16, 36]:
		table["2d, %d rays" % count] = _compare(_sensor_2d(count))
		table["3d, %d rays" % count] = _compare(_sensor_3d(count))
	print(JSON.stringify({"godot": Engine.get_version_info().string, "usec_a_look": table}))
	quit()


func _sensor_2d(count: int) -> Node:
	var sensor: RaycastSensor2D = RaycastSensor2D.new()
	sensor.n_rays = count
	root.add_child(sensor)
	return sensor


func _sensor_3d(count: int) -> Node:
	var sensor: RayCastSensor3D = RayCastSensor3D.new()
	sensor.n_rays_width = count
	sensor.n_rays_height = 1
	sensor.cone_width = 360.0
	root.add_child(sensor)
	return sensor


func _compare(sensor: Node) -> Dictionary:
	var ways: Dictionary[String, Callable] = {
		"sensor": sensor.get_observation,
		"a node a ray": _cast_nodes.bind(sensor),
		"space queries": (_query_2d if sensor is Node2D else _query_3d).bind(sensor),
	}
	var usec: Dictionary[String, float] = {}
	for way: String in ways:
		usec[way] = INF
		if ways[way].call() != sensor.get_observation():
			printerr("%s: it does not see the same" % way)
	for _round: int in ROUNDS:
		for way: String in ways:
			usec[way] = minf(usec[way], _time(ways[way]))
	return usec


func _cast_nodes(sensor: Node) -> Array:
	var seen: Array = []
	for ray: Node in sensor.rays:
		ray.enabled = true
		ray.force_raycast_update()
		seen.append(sensor._get_raycast_distance(ray))
		ray.enabled = false
	return seen


func _query_2d(sensor: RaycastSensor2D) -> Array:
	var space: PhysicsDirectSpaceState2D = sensor.get_world_2d().direct_space_state
	var ends: PackedVector2Array = sensor.global_transform * sensor._ends
	var from: Vector2 = sensor.global_position
	var query: PhysicsRayQueryParameters2D = PhysicsRayQueryParameters2D.new()
	var seen: Array = []
	query.from = from
	for end: Vector2 in ends:
		query.to = end
		var hit: Dictionary = space.intersect_ray(query)
		seen.append(1.0 - from.distance_to(hit.position) / sensor.ray_length if hit else 0.0)
	return seen


func _query_3d(sensor: RayCastSensor3D) -> Array:
	var space: PhysicsDirectSpaceState3D = sensor.get_world_3d().direct_space_state
	var ends: PackedVector3Array = sensor.global_transform * sensor._ends
	var from: Vector3 = sensor.global_position
	var query: PhysicsRayQueryParameters3D = PhysicsRayQueryParameters3D.new()
	var seen: Array = []
	query.from = from
	for end: Vector3 in ends:
		query.to = end
		var hit: Dictionary = space.intersect_ray(query)
		seen.append(1.0 - from.distance_to(hit.position) / sensor.ray_length if hit else 0.0)
	return seen


func _time(look: Callable) -> float:
	var start: int = Time.get_ticks_usec()
	for _look: int in LOOKS:
		look.call()
	return snappedf(float(Time.get_ticks_usec() - start) / LOOKS, 0.1)


func _add_box_2d(at: Vector2) -> void:
	var box: StaticBody2D = StaticBody2D.new()
	var shape: CollisionShape2D = CollisionShape2D.new()
	shape.shape = RectangleShape2D.new()
	box.add_child(shape)
	box.position = at
	root.add_child(box)


func _add_box_3d(at: Vector3) -> void:
	var box: StaticBody3D = StaticBody3D.new()
	var shape: CollisionShape3D = CollisionShape3D.new()
	shape.shape = BoxShape3D.new()
	box.add_child(shape)
	box.position = at
	root.add_child(box)
