@tool
class_name RaycastSensor2D
extends ISensor2D
## How near things are along the rays of a fan around +x: 1 at the sensor, 0 for nothing in reach.
##
## The rays are cast when `get_observation` is called. A ray does not see the shape that it starts
## in.

## Layers that the rays meet.
@export_flags_2d_physics var collision_mask: int = 1:
	set(value):
		collision_mask = value
		_update()
@export var collide_with_areas: bool = false:
	set(value):
		collide_with_areas = value
		_update()
@export var collide_with_bodies: bool = true:
	set(value):
		collide_with_bodies = value
		_update()
@export_range(1, 360, 1, "or_greater") var n_rays: int = 16:
	set(value):
		n_rays = value
		_update()
@export_range(5, 3000, 5.0, "or_less", "or_greater", "suffix:px") var ray_length: float = 200.0:
	set(value):
		ray_length = value
		_update()
## The angle that the rays share evenly, each in the middle of its part.
@export_range(5, 360, 5.0, "degrees") var cone_width: float = 360.0:
	set(value):
		cone_width = value
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
var rays: Array[RayCast2D]:
	get:
		if _ray_nodes.is_empty():
			_ray_nodes = _make_ray_nodes()
		return _ray_nodes

## Where the rays end, in the sensor's frame; empty until they are needed.
var _ends: PackedVector2Array = []
var _ray_nodes: Array[RayCast2D] = []
## Casts one ray after another. Faster than both a node a ray and questions to the physics space,
## which are answered with a dictionary each.
var _probe: RayCast2D
var _drawn: bool = false


func _ready() -> void:
	_update()


func _draw() -> void:
	if not _drawn:
		return
	_aim()
	for ray: int in _ends.size():
		var near: float = _obs[ray]
		draw_line(Vector2.ZERO, _ends[ray] * (1.0 - near), RLAddon.RaySensor.color(near))


func _get_configuration_warnings() -> PackedStringArray:
	return RLAddon.RaySensor.warnings(self, n_rays)


## Nearness along each ray.
func get_observation() -> Array:
	return calculate_raycasts()


## Cast every ray. While physics callbacks run, which forbid it, what was seen last is given.
func calculate_raycasts() -> Array:
	_aim()
	if not RLAddon.Tick.in_scripts or not is_inside_tree():
		return _obs.duplicate()
	if not _probe:
		_probe = RLAddon.RaySensor.add_ray(self, RayCast2D.new())
	# As in RaycastSensor3D: locals, and no calls of our own for each ray.
	var probe: RayCast2D = _probe
	var reach: float = ray_length
	var from: Vector2 = global_position
	var place: int = 0
	var seen: Array = []
	seen.resize(_ends.size())
	seen.fill(0.0)
	for end: Vector2 in _ends:
		probe.target_position = end
		probe.force_raycast_update()
		if probe.is_colliding():
			var near: float = reach - from.distance_to(probe.get_collision_point())
			seen[place] = near / reach if near > 0.0 else 0.0
		place += 1
	_obs = seen.duplicate()
	if _drawn:
		queue_redraw()
	return seen


## The nearness that a ray node of `rays` has found.
func _get_raycast_distance(ray: RayCast2D) -> float:
	return RLAddon.RaySensor.nearness(self, ray)


## Called when an exported property changes.
func _update() -> void:
	_ends.clear()
	for node: RayCast2D in _ray_nodes:
		node.queue_free()
	_ray_nodes = []
	if _probe:
		RLAddon.RaySensor.set_up(self, _probe)
	_drawn = debug_draw and RLAddon.SensorDrawing.is_seen(self, draw_in_game)
	queue_redraw()
	update_configuration_warnings()


func _aim() -> void:
	if not _ends.is_empty():
		return
	for ray: int in n_rays:
		var angle: float = RLAddon.RaySensor.angle(ray, n_rays, cone_width)
		_ends.append(ray_length * Vector2.from_angle(angle))
	if _obs.size() != _ends.size():
		_obs.resize(_ends.size())
		_obs.fill(0.0)


func _make_ray_nodes() -> Array[RayCast2D]:
	_aim()
	var nodes: Array[RayCast2D] = []
	for end: Vector2 in _ends:
		nodes.append(RLAddon.RaySensor.add_ray(self, RayCast2D.new()))
		nodes[-1].target_position = end
	return nodes
