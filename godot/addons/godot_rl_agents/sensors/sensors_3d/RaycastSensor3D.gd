@tool
class_name RayCastSensor3D
extends ISensor3D
## How near things are along rays around +z: 1 at the sensor, 0 for nothing in reach.
##
## Columns from -x to +x, in each the rays from the lowest to the highest. With `class_sensor` each
## nearness is followed by 1 if what the ray met is on a layer of `boolean_class_mask`, else 0.
## The rays are cast when `get_observation` is called. A ray does not see the convex shape that it
## starts in.

## Layers that the rays meet.
@export_flags_3d_physics var collision_mask: int = 1:
	set(value):
		collision_mask = value
		_update()
## Layers that `class_sensor` tells apart from the others.
@export_flags_3d_physics var boolean_class_mask: int = 1:
	set(value):
		boolean_class_mask = value
		_update()
@export_range(1, 100, 1, "or_greater") var n_rays_width: int = 6:
	set(value):
		n_rays_width = value
		_update()
@export_range(1, 100, 1, "or_greater") var n_rays_height: int = 6:
	set(value):
		n_rays_height = value
		_update()
@export_range(0.1, 100.0, 0.1, "or_less", "or_greater", "suffix:m") var ray_length: float = 10.0:
	set(value):
		ray_length = value
		_update()
## The angle that the columns share evenly, each in the middle of its part.
@export_range(0.0, 360.0, 0.1, "degrees") var cone_width: float = 60.0:
	set(value):
		cone_width = value
		_update()
## The angle that the rays of a column share evenly.
@export_range(0.0, 180.0, 0.1, "degrees") var cone_height: float = 60.0:
	set(value):
		cone_height = value
		_update()
@export var collide_with_areas: bool = false:
	set(value):
		collide_with_areas = value
		_update()
@export var collide_with_bodies: bool = true:
	set(value):
		collide_with_bodies = value
		_update()
## Say of everything met whether it is on a layer of `boolean_class_mask`.
@export var class_sensor: bool = false:
	set(value):
		class_sensor = value
		_update()
## Draw the rays in the editor, and in a game started with visible collision shapes.
@export var debug_draw: bool = true:
	set(value):
		debug_draw = value
		_update()
## Draw them in every game.
@export var draw_in_game: bool = false:
	set(value):
		draw_in_game = value
		_update()

## The same rays as nodes, for scripts that cast them themselves; made when first asked for.
var rays: Array[RayCast3D]:
	get:
		if _ray_nodes.is_empty():
			_ray_nodes = _make_ray_nodes()
		return _ray_nodes

## Where the rays end, in the sensor's frame; empty until they are needed.
var _ends: PackedVector3Array = []
var _ray_nodes: Array[RayCast3D] = []
## Casts one ray after another. Faster than both a node a ray and questions to the physics space,
## which are answered with a dictionary each.
var _probe: RayCast3D
## Null while the rays are not drawn.
var _lines: RLAddon.SensorLines3D


func _ready() -> void:
	_remove_saved_rays()
	_update()


func _get_configuration_warnings() -> PackedStringArray:
	var rays_in_all: int = maxi(n_rays_width, 0) * maxi(n_rays_height, 0)
	var warnings: PackedStringArray = RLAddon.RaySensor.warnings(self, rays_in_all)
	if class_sensor and not collision_mask & boolean_class_mask:
		warnings.append("boolean_class_mask has no layer of collision_mask: the class is always 0.")
	return warnings


## Nearness along each ray, and with `class_sensor` the class of what it met.
func get_observation() -> Array:
	return calculate_raycasts()


## Cast every ray. While physics callbacks run, which forbid it, what was seen last is given.
func calculate_raycasts() -> Array:
	_aim()
	if not RLAddon.Tick.in_scripts or not is_inside_tree():
		return _obs.duplicate()
	if not _probe:
		_probe = RLAddon.RaySensor.add_ray(self, RayCast3D.new())
	# Locals and no calls of our own: that is half of what a ray costs beside the cast itself.
	var probe: RayCast3D = _probe
	var reach: float = ray_length
	var from: Vector3 = global_position
	var stride: int = 2 if class_sensor else 1
	var classes: int = collision_mask & boolean_class_mask if class_sensor else 0
	var place: int = 0
	var seen: Array = []
	seen.resize(_ends.size() * stride)
	seen.fill(0.0)
	for end: Vector3 in _ends:
		probe.target_position = end
		probe.force_raycast_update()
		if probe.is_colliding():
			var near: float = reach - from.distance_to(probe.get_collision_point())
			seen[place] = near / reach if near > 0.0 else 0.0
			if classes and _layers_met() & classes:
				seen[place + 1] = 1.0
		place += stride
	_obs = seen.duplicate()
	if _lines:
		_show_rays()
	return seen


## Numbers a ray gives.
func _stride() -> int:
	return 2 if class_sensor else 1


## Of the server, since not every node that makes bodies has a layer of its own.
func _layers_met() -> int:
	if _probe.get_collider() is Area3D:
		return PhysicsServer3D.area_get_collision_layer(_probe.get_collider_rid())
	return PhysicsServer3D.body_get_collision_layer(_probe.get_collider_rid())


## The nearness that a ray node of `rays` has found.
func _get_raycast_distance(ray: RayCast3D) -> float:
	return RLAddon.RaySensor.nearness(self, ray)


## Called when an exported property changes.
func _update() -> void:
	_ends.clear()
	for node: RayCast3D in _ray_nodes:
		node.queue_free()
	_ray_nodes = []
	if _probe:
		RLAddon.RaySensor.set_up(self, _probe)
	update_configuration_warnings()
	if debug_draw and RLAddon.SensorDrawing.is_seen(self, draw_in_game):
		if not _lines:
			_lines = RLAddon.SensorLines3D.new()
			add_child(_lines, false, Node.INTERNAL_MODE_BACK)
		_aim()
		_show_rays()
	elif _lines:
		_lines.queue_free()
		_lines = null


func _aim() -> void:
	if not _ends.is_empty():
		return
	for column: int in n_rays_width:
		var aside: float = RLAddon.RaySensor.angle(column, n_rays_width, cone_width)
		for row: int in n_rays_height:
			var up: float = RLAddon.RaySensor.angle(row, n_rays_height, cone_height)
			var level: Vector3 = Vector3(sin(aside), 0.0, cos(aside))
			_ends.append(ray_length * (cos(up) * level + sin(up) * Vector3.UP))
	if _obs.size() != _ends.size() * _stride():
		_obs.resize(_ends.size() * _stride())
		_obs.fill(0.0)


func _show_rays() -> void:
	var points: PackedVector3Array = []
	var colors: PackedColorArray = []
	for ray: int in _ends.size():
		var near: float = _obs[ray * _stride()]
		var color: Color = RLAddon.RaySensor.color(near)
		points.append_array([Vector3.ZERO, _ends[ray] * (1.0 - near)])
		colors.append_array([color, color])
	_lines.show_lines(points, colors)


## Scenes made with Godot RL Agents hold a saved node a ray, which would cast every tick.
func _remove_saved_rays() -> void:
	for child: Node in get_children():
		if child is RayCast3D and "node_" in child.name:
			child.queue_free()


func _make_ray_nodes() -> Array[RayCast3D]:
	_aim()
	var nodes: Array[RayCast3D] = []
	for end: Vector3 in _ends:
		nodes.append(RLAddon.RaySensor.add_ray(self, RayCast3D.new()))
		nodes[-1].target_position = end
	return nodes
