extends Node
## Reports to `estragon judge hunt` in every physics tick: where bodies are, how fast, how deep they
## are in one another, and how many objects there are.
##
## It runs before Sync, so that a tick's report is sent before the trainer has its answer. A frame
## is a length, then JSON when the bodies changed, or packed float64. The last tick of a step sends
## two: of each tick of the step 4 numbers, then 7 for each body, then the watched properties; and
## -1, the place of each thing and how near the first body came, and the scripts' variables. Before
## a step it is told how many ticks the step has, or 0: then every tick sends.

const FIRST: int = -(1 << 30) - 1
const MOST_BODIES: int = 24
## Depths are measured in every so manyth tick, of so many bodies.
const DEPTH_TICKS: int = 6
const MOST_DEPTHS: int = 6
## A collider counts as part of the level if it is at least this large, compared with the largest.
const LARGE: float = 0.2
const MOVING: Array[String] = ["Character", "Rigid", "Animatable"]
const MOST_CONTACTS: int = 8
## How near things are is measured in every tick, or of many things in every so manyth.
const NEAR_TICKS: int = 3
const FEW_THINGS: int = 10
const MOST_THINGS: int = 40
const MOST_VARIABLES: int = 160
## Objects in variables of nodes, and elements of arrays, are read so deep, and so many.
const MOST_NESTED: int = 2
const MOST_ELEMENTS: int = 6
## The first of the types that have a size.
const SIZED: int = TYPE_DICTIONARY
const NUMBERS: Array[int] = [TYPE_BOOL, TYPE_INT, TYPE_FLOAT]
const TYPES: Dictionary[int, String] = {
	TYPE_BOOL: "b", TYPE_INT: "i", TYPE_FLOAT: "f", TYPE_STRING: "s"
}

var _socket: StreamPeerTCP = StreamPeerTCP.new()
var _is_stale: bool = true
var _bodies: Array[Node] = []
var _depths: PackedFloat64Array = []
var _half_size: float = 1.0
var _tick: int = 0
## Of the current step.
var _step_tick: int = 0
var _step_ticks: int = 0
var _rows: PackedFloat64Array = []
## Nodes, objects, bytes.
var _counts: PackedFloat64Array = [0.0, 0.0, 0.0]
## Each a node's path and a property, such as Main/Player:position:y.
var _watched: PackedStringArray
var _things: Array[Node] = []
## Of each thing, what its shape covers in its own axes; without a volume if that is not known.
var _boxes: Array[AABB] = []
## How near the first body came in this step.
var _near: PackedFloat64Array = []
## The ids of the objects with variables.
var _owners: PackedInt64Array = []
var _properties: Array[PackedStringArray] = []
var _variables: PackedStringArray = []
## A letter for each variable.
var _types: String = ""
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
	_step_tick += 1
	if _step_tick > _step_ticks and not _has_next_step():
		return
	if _is_stale:
		_is_stale = false
		_find_bodies()
		_find_things()
		_find_variables()
		_rows.clear()
		_send(JSON.stringify(_describe()).to_utf8_buffer())
	_tick += 1
	var is_last: bool = _step_tick >= _step_ticks
	if is_last:
		var tree: SceneTree = get_tree()
		var orphans: float = Performance.get_monitor(Performance.OBJECT_ORPHAN_NODE_COUNT)
		var objects: float = Performance.get_monitor(Performance.OBJECT_COUNT)
		_counts = [tree.get_node_count() + orphans, objects, OS.get_static_memory_usage()]
	_rows.append(_tick)
	_rows.append_array(_counts)
	var has_depths: bool = _tick % DEPTH_TICKS == 0
	for i: int in _bodies.size():
		var body: Node = _bodies[i]
		if not is_instance_valid(body) or not body.is_inside_tree():
			_rows.append_array([INF, INF, INF, 0.0, 0.0, 0.0, 0.0])
			continue
		if has_depths and i < MOST_DEPTHS:
			_depths[i] = _depth_of(body)
		var at: Variant = body.global_position
		var speed: Variant = _velocity_of(body)
		if at is Vector3:
			_rows.append_array([at.x, at.y, at.z, speed.x, speed.y, speed.z, _depths[i]])
		else:
			_rows.append_array([at.x, at.y, 0.0, speed.x, speed.y, 0.0, _depths[i]])
	for property: String in _watched:
		_rows.append(_value_of(property))
	if is_last or _things.size() <= FEW_THINGS or _step_tick % NEAR_TICKS == 0:
		_approach()
	if is_last:
		_send(_rows.to_byte_array())
		_rows.clear()
		_send(_state().to_byte_array())
		_near.fill(INF)


## Whether the trainer is there; also reads how many ticks the next step has.
func _has_next_step() -> bool:
	_socket.poll()
	while _socket.get_available_bytes() >= 4:
		_step_ticks = _socket.get_u32()
		_step_tick = 1
	return _socket.get_status() == StreamPeerTCP.STATUS_CONNECTED


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
	_half_size = 0.5 * _size_of(_bodies[0]) if _bodies else 0.0
	_half_size = _half_size if _half_size else 1.0


func _append(body: Node) -> void:
	if body not in _bodies and _bodies.size() < MOST_BODIES:
		_bodies.append(body)


func _describe() -> Dictionary:
	var names: Array = []
	for body: Node in _bodies:
		names.append(str(body.get_path()).trim_prefix("/root/"))
	var is_3d: bool = not _bodies.is_empty() and _bodies[0] is Node3D
	return {
		"bodies": names,
		"sizes": _bodies.map(_size_of),
		"is_3d": is_3d,
		"is_rigid": _bodies and (_bodies[0] is RigidBody3D or _bodies[0] is RigidBody2D),
		"bounds": _level("CollisionShape3D" if is_3d else "CollisionShape2D"),
		"things": _things.map(func(thing: Node) -> String: return str(thing.get_path())),
		"kinds": _things.map(_kind_of),
		"is_solid": range(_things.size()).map(_is_solid),
		"variables": _variables,
		"types": _types,
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


## What the player could meet: bodies, areas, what has a script or a mesh; not the player's parts.
func _find_things() -> void:
	_things.clear()
	_boxes.clear()
	var wanted: Array[Node] = []
	var classes: Array[String] = ["CollisionObject", "MeshInstance", "Sprite", "Marker"]
	for kind: String in classes:
		for dimension: String in ["3D", "2D"]:
			wanted += get_tree().root.find_children("*", kind + dimension, true, false)
	for node: Node in wanted:
		if _things.size() < MOST_THINGS and not _is_part(node):
			_things.append(node)
			_boxes.append(_extent_of(node))
	_near.resize(_things.size())
	_near.fill(INF)


## Whether a node is a body that is reported, or below one, or below another thing.
func _is_part(node: Node) -> bool:
	while node:
		if node in _things or node in _bodies or node is Camera3D:
			return true
		node = node.get_parent()
	return false


func _is_solid(index: int) -> bool:
	return _is_physics_body(_things[index]) and _boxes[index].has_volume()


static func _kind_of(thing: Node) -> String:
	var script: Script = thing.get_script()
	var words: Array = [thing.get_parent().get_path(), thing.get_class()]
	return "%s/%s %s" % (words + [script.resource_path.get_file() if script else ""])


## What is seen of a thing, if that is a solid of a simple form, else what collides, if it is one.
static func _extent_of(thing: Node) -> AABB:
	var seen: AABB = AABB()
	var shapes: Array[AABB] = []
	for node: Node in [thing] + thing.find_children("*", "Node3D", true, false):
		if node is MeshInstance3D and (node.mesh is BoxMesh or node.mesh is CylinderMesh):
			var box: AABB = _local_box(thing, node, node.mesh)
			seen = box if box.get_volume() > seen.get_volume() else seen
		elif node is CollisionShape3D and node.shape and not node.shape is ConcavePolygonShape3D:
			if not node.shape is HeightMapShape3D and not node.shape is WorldBoundaryShape3D:
				shapes.append(_local_box(thing, node, node.shape.get_debug_mesh()))
	seen = seen if seen.has_volume() else _saved_extent_of(thing)
	return seen if seen.has_volume() or shapes.size() != 1 else shapes[0]


## The same of the scene's file: without a display, games may free what is only seen.
static func _saved_extent_of(thing: Node) -> AABB:
	var seen: AABB = AABB()
	if not thing is Node3D or not thing.owner or not thing.owner.scene_file_path:
		return seen
	var state: SceneState = load(thing.owner.scene_file_path).get_state()
	for i: int in state.get_node_count():
		if state.get_node_path(i, true) != NodePath("./%s" % thing.owner.get_path_to(thing)):
			continue
		var mesh: Mesh = null
		var at: Transform3D = Transform3D.IDENTITY
		for j: int in state.get_node_property_count(i):
			match state.get_node_property_name(i, j):
				&"mesh":
					mesh = state.get_node_property_value(i, j)
				&"transform":
					at = state.get_node_property_value(i, j)
		if mesh is BoxMesh or mesh is CylinderMesh:
			var box: AABB = at * mesh.get_aabb()
			seen = box if box.get_volume() > seen.get_volume() else seen
	return seen


static func _local_box(thing: Node3D, part: Node3D, mesh: Mesh) -> AABB:
	return thing.global_transform.affine_inverse() * part.global_transform * mesh.get_aabb()


## How near the first body is, in halves of its size: 1 at the edge of a thing's box, less inside; a
## distance if the thing has no box.
func _nearness(thing: Node, box: AABB, at: Variant) -> float:
	if not box.has_volume() or not at is Vector3:
		return at.distance_to(thing.global_position) / _half_size
	var local: Vector3 = thing.global_transform.affine_inverse() * at - box.get_center()
	var spare: Vector3 = 0.5 * box.size - local.abs()
	return 1.0 - spare[spare.min_axis_index()] / _half_size


func _approach() -> void:
	if not _bodies or not is_instance_valid(_bodies[0]) or not _bodies[0].is_inside_tree():
		return
	var at: Variant = _bodies[0].global_position
	for i: int in _things.size():
		if _is_there(_things[i]) and typeof(at) == typeof(_things[i].global_position):
			_near[i] = minf(_near[i], _nearness(_things[i], _boxes[i], at))


static func _is_there(thing: Node) -> bool:
	return is_instance_valid(thing) and thing.is_inside_tree() and thing.visible


func _state() -> PackedFloat64Array:
	var numbers: PackedFloat64Array = [-1.0]
	for i: int in _things.size():
		if not _is_there(_things[i]):
			numbers.append_array([INF, INF, INF, INF])
			continue
		var place: Variant = _things[i].global_position
		numbers.append_array([place.x, place.y, place.z if place is Vector3 else 0.0, _near[i]])
	for i: int in _owners.size():
		if not is_instance_id_valid(_owners[i]):
			_is_stale = true  # the game has made new ones
			for property: String in _properties[i]:
				numbers.append(NAN)
			continue
		var from: Object = instance_from_id(_owners[i])
		for property: String in _properties[i]:
			numbers.append(_number_of(from.get(property)))
	return numbers


## The variables of all scripts of the scene, and of the objects that they have.
func _find_variables() -> void:
	_owners.clear()
	_properties.clear()
	_variables.clear()
	_types = ""
	var known: Dictionary[int, bool] = {}
	for node: Node in get_tree().root.find_children("*", "", true, false):
		if _foreign_script(node.get_script()) != node.get_script():
			_add_variables(node, str(node.get_path()).trim_prefix("/root/"), 0, known)


func _add_variables(from: Object, path: String, depth: int, known: Dictionary[int, bool]) -> void:
	if known.has(from.get_instance_id()) or _variables.size() >= MOST_VARIABLES:
		return
	known[from.get_instance_id()] = true
	var names: PackedStringArray = []
	var nested: Dictionary[String, Object] = {}
	var foreign: Script = _foreign_script(from.get_script())
	var inherited: Array = []
	if foreign:
		inherited = foreign.get_script_property_list().map(_name_of)
	for property: Dictionary in from.get_property_list():
		if not property["usage"] & PROPERTY_USAGE_SCRIPT_VARIABLE or property["name"] in inherited:
			continue
		var title: String = property["name"]
		var value: Variant = from.get(title)
		if _is_readable(value) and is_same(value, from.get(title)):
			nested[title] = value
		elif value is Array and value and _is_readable(value[0]):
			for i: int in mini(value.size(), MOST_ELEMENTS):
				nested["%s %d" % [title, i]] = value[i] if _is_readable(value[i]) else null
		if typeof(value) in NUMBERS or typeof(value) == TYPE_STRING or typeof(value) >= SIZED:
			if _variables.size() < MOST_VARIABLES:
				names.append(title)
				_variables.append("%s:%s" % [path, title])
				_types += TYPES.get(typeof(value), "n")
	_owners.append(from.get_instance_id())
	_properties.append(names)
	if depth < MOST_NESTED:
		for title: String in nested:
			if nested[title] and nested[title].get_script():
				_add_variables(nested[title], "%s.%s" % [path, title], depth + 1, known)


## Whether it is an object that lives, but not in the tree, and is no resource.
static func _is_readable(value: Variant) -> bool:
	return is_instance_valid(value) and value is RefCounted and not value is Resource


static func _name_of(property: Dictionary) -> String:
	return property["name"]


## The script itself or the nearest one that it extends that is not the game's own, but an addon's.
static func _foreign_script(script: Script) -> Script:
	while script and not script.resource_path.begins_with("res://addons/"):
		if not script.resource_path.begins_with("res://") and script.resource_path:
			return script
		script = script.get_base_script()
	return script


## A variable as a number: texts by their hash, containers by their size.
static func _number_of(value: Variant) -> float:
	if typeof(value) in NUMBERS:
		var number: float = float(value)
		return number if not is_nan(number) else -1e308
	if value is String:
		return value.hash() & 0xFFFF
	if typeof(value) >= SIZED:
		return value.size()
	return NAN


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
