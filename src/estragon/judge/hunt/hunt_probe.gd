extends Node
## Reports to `estragon judge hunt` in every physics tick: where bodies are, how fast, how deep they
## are in one another, and how many objects there are.
##
## It runs before Sync, so that a tick's report is sent before the trainer has its answer. A frame
## is a length, then JSON when the bodies changed, or packed float64: 4 numbers, then 7 for each
## body, then the watched properties.

const FIRST: int = -(1 << 30) - 1
const MOST_BODIES: int = 24
## Depths are measured in every so manyth tick, of so many bodies.
const DEPTH_TICKS: int = 4
const MOST_DEPTHS: int = 6
## A collider counts as part of the level if it is at least this large, compared with the largest.
const LARGE: float = 0.2
const MOVING: Array[String] = ["Character", "Rigid", "Animatable"]
const MOST_CONTACTS: int = 8

var _socket: StreamPeerTCP = StreamPeerTCP.new()
var _is_stale: bool = true
var _bodies: Array[Node] = []
var _depths: PackedFloat64Array = []
var _tick: int = 0
## Each a node's path and a property, such as Main/Player:position:y.
var _watched: PackedStringArray
var _shape_2d: PhysicsShapeQueryParameters2D = PhysicsShapeQueryParameters2D.new()
var _shape_3d: PhysicsShapeQueryParameters3D = PhysicsShapeQueryParameters3D.new()


func _init(port: int, watched: PackedStringArray) -> void:
	_watched = watched
	name = "HuntProbe"
	process_mode = Node.PROCESS_MODE_ALWAYS
	process_physics_priority = FIRST
	_socket.connect_to_host("127.0.0.1", port)
	while _socket.get_status() == StreamPeerTCP.STATUS_CONNECTING:
		_socket.poll()
		OS.delay_usec(100)
	_socket.set_no_delay(true)


func _enter_tree() -> void:
	get_tree().node_added.connect(_on_changed)
	get_tree().node_removed.connect(_on_changed)


func _physics_process(_delta: float) -> void:
	_socket.poll()
	if _socket.get_status() != StreamPeerTCP.STATUS_CONNECTED:
		return
	if _is_stale:
		_is_stale = false
		_find_bodies()
		_send(JSON.stringify(_describe()).to_utf8_buffer())
	_tick += 1
	var numbers: PackedFloat64Array = [
		_tick,
		get_tree().get_node_count() + Performance.get_monitor(Performance.OBJECT_ORPHAN_NODE_COUNT),
		Performance.get_monitor(Performance.OBJECT_COUNT),
		OS.get_static_memory_usage(),
	]
	var has_depths: bool = _tick % DEPTH_TICKS == 0
	for i: int in _bodies.size():
		var body: Node = _bodies[i]
		if not is_instance_valid(body) or not body.is_inside_tree():
			numbers.append_array([INF, INF, INF, 0.0, 0.0, 0.0, 0.0])
			continue
		if has_depths and i < MOST_DEPTHS:
			_depths[i] = _depth_of(body)
		var at: Variant = body.global_position
		var speed: Variant = _velocity_of(body)
		if at is Vector3:
			numbers.append_array([at.x, at.y, at.z, speed.x, speed.y, speed.z, _depths[i]])
		else:
			numbers.append_array([at.x, at.y, 0.0, speed.x, speed.y, 0.0, _depths[i]])
	for property: String in _watched:
		numbers.append(_value_of(property))
	_send(numbers.to_byte_array())


func _send(frame: PackedByteArray) -> void:
	var head: PackedInt32Array = [frame.size()]
	_socket.put_data(head.to_byte_array() + frame)


## Agents' bodies first, then whatever else moves.
func _find_bodies() -> void:
	_bodies.clear()
	for agent: Node in get_tree().get_nodes_in_group(&"AGENT"):
		var player: Variant = agent.get("_player")
		if not is_instance_valid(player):
			player = agent.get_parent()
		if player is Node2D or player is Node3D:
			_append(player)
	for kind: String in MOVING:
		for body: Node in get_tree().root.find_children("*", kind + "Body3D", true, false):
			_append(body)
		for body: Node in get_tree().root.find_children("*", kind + "Body2D", true, false):
			_append(body)
	_depths.resize(_bodies.size())
	_depths.fill(0.0)


func _append(body: Node) -> void:
	if body not in _bodies and _bodies.size() < MOST_BODIES:
		_bodies.append(body)


func _describe() -> Dictionary:
	var names: Array = []
	for body: Node in _bodies:
		names.append(str(body.get_path()).trim_prefix("/root/"))
	var limits: Array = []
	for agent: Node in get_tree().get_nodes_in_group(&"AGENT"):
		limits.append(agent.get("reset_after"))
	var is_3d: bool = not _bodies.is_empty() and _bodies[0] is Node3D
	return {
		"bodies": names,
		"sizes": _bodies.map(_size_of),
		"is_3d": is_3d,
		"bounds": _level("CollisionShape3D" if is_3d else "CollisionShape2D"),
		"reset_after": limits,
		"ticks_per_sec": Engine.physics_ticks_per_second / maxf(Engine.time_scale, 0.01),
	}


## The least and the greatest corner of the large static colliders; empty if there are none.
func _level(kind: String) -> Array:
	var boxes: Array[AABB] = []
	var largest: float = 0.0
	for shape: Node in get_tree().root.find_children("*", kind, true, false):
		if not shape.disabled and shape.shape and _is_static(shape.get_parent()):
			if not shape.shape.get_class().begins_with("WorldBoundary"):
				boxes.append(_box_of(shape))
				largest = maxf(largest, boxes[-1].get_longest_axis_size())
	var whole: Array[AABB] = []
	for box: AABB in boxes:
		if box.get_longest_axis_size() >= LARGE * largest:
			whole = [whole[0].merge(box) if whole else box]
	if not whole:
		return []
	var ends: Array = [whole[0].position, whole[0].end]
	return ends.map(func(at: Vector3) -> Array: return [at.x, at.y, at.z])


static func _box_of(shape: Node) -> AABB:
	if shape is CollisionShape3D:
		return shape.global_transform * shape.shape.get_debug_mesh().get_aabb()
	var flat: Rect2 = shape.global_transform * shape.shape.get_rect()
	return AABB(
		Vector3(flat.position.x, flat.position.y, 0.0), Vector3(flat.size.x, flat.size.y, 0.0)
	)


## How deep a body is in another one.
func _depth_of(body: Node) -> float:
	if not _is_physics_body(body):
		return 0.0
	var query: Variant = _shape_3d if body is Node3D else _shape_2d
	var world: Variant = body.get_world_3d() if body is Node3D else body.get_world_2d()
	query.exclude = [body.get_rid()]
	var deepest: float = 0.0
	for id: int in body.get_shape_owners():
		if body.is_shape_owner_disabled(id) or body.shape_owner_get_shape_count(id) == 0:
			continue
		query.shape = body.shape_owner_get_shape(id, 0)
		query.transform = body.global_transform * body.shape_owner_get_transform(id)
		var pairs: Array = world.direct_space_state.collide_shape(query, MOST_CONTACTS)
		for i: int in range(0, pairs.size() - 1, 2):
			deepest = maxf(deepest, pairs[i].distance_to(pairs[i + 1]))
	return deepest


func _on_changed(node: Node) -> void:
	if node is CollisionObject2D or node is CollisionObject3D or node.is_in_group(&"AGENT"):
		_is_stale = true


## A number; NAN where there is none.
func _value_of(property: String) -> float:
	var node: Node = get_tree().root.get_node_or_null(property.get_slice(":", 0))
	var path: String = property.substr(property.find(":") + 1)
	var value: Variant = node.get_indexed(path) if node else null
	return float(value) if typeof(value) in [TYPE_BOOL, TYPE_INT, TYPE_FLOAT] else NAN


## The least extent of a body's first shape; 0 if it has none.
static func _size_of(body: Node) -> float:
	if not _is_physics_body(body) or not body.get_shape_owners():
		return 0.0
	var id: int = body.get_shape_owners()[0]
	if body.shape_owner_get_shape_count(id) == 0:
		return 0.0
	var shape: Resource = body.shape_owner_get_shape(id, 0)
	if shape is Shape2D:
		return minf(shape.get_rect().size.x, shape.get_rect().size.y)
	return shape.get_debug_mesh().get_aabb().get_shortest_axis_size()


static func _velocity_of(body: Node) -> Variant:
	var velocity: Variant = body.get("linear_velocity")
	if velocity == null:
		velocity = body.get("velocity")
	if velocity is Vector2 or velocity is Vector3:
		return velocity
	return Vector3.ZERO if body is Node3D else Vector2.ZERO


static func _is_physics_body(node: Node) -> bool:
	return node is PhysicsBody3D or node is PhysicsBody2D


static func _is_static(node: Node) -> bool:
	if node is AnimatableBody3D or node is AnimatableBody2D:
		return false
	return node is StaticBody3D or node is StaticBody2D
