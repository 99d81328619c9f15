@tool
class_name GridSensor3D
extends ISensor3D
## Counts the bodies and areas in each cell of a grid around the sensor, per collision layer.
##
## Column by column (x), in each cell by cell (z), in each cell one number for every layer of
## `detection_mask`, the lowest first. The cells are queried when `get_observation` is called.
## Static bodies are counted, too.

## Draw the cells in the editor and in the game.
@export var debug_view: bool = false:
	set(value):
		debug_view = value
		_update()
## Layers to count.
@export_flags_3d_physics var detection_mask: int = 0:
	set(value):
		detection_mask = value
		_update()
@export var collide_with_areas: bool = false:
	set(value):
		collide_with_areas = value
		_update()
@export var collide_with_bodies: bool = false:
	set(value):
		collide_with_bodies = value
		_update()
## Of a cell along x and z.
@export_range(0.1, 2.0, 0.1, "or_greater", "suffix:m") var cell_width: float = 1.0:
	set(value):
		cell_width = value
		_update()
@export_range(0.1, 2.0, 0.1, "or_greater", "suffix:m") var cell_height: float = 1.0:
	set(value):
		cell_height = value
		_update()
@export_range(1, 21, 2, "or_greater") var grid_size_x: int = 3:
	set(value):
		grid_size_x = value
		_update()
@export_range(1, 21, 2, "or_greater") var grid_size_z: int = 3:
	set(value):
		grid_size_z = value
		_update()

var _counts: RLAddon.GridCounts = RLAddon.GridCounts.new()
var _cell: BoxShape3D = BoxShape3D.new()
var _whole: BoxShape3D = BoxShape3D.new()
var _query: PhysicsShapeQueryParameters3D = PhysicsShapeQueryParameters3D.new()
## Null while the cells are not drawn.
var _lines: RLAddon.SensorLines3D


func _ready() -> void:
	RLAddon.GridCounts.remove_saved_cells(self)
	_update()


func _get_configuration_warnings() -> PackedStringArray:
	return RLAddon.GridCounts.warnings(self)


## The counts. During physics callbacks, which must not query, the counts of the last call.
func get_observation() -> PackedFloat64Array:
	if RLAddon.Tick.in_scripts and is_inside_tree():
		_count()
	return _counts.counts


func reset() -> void:
	_counts.clear()


func _count() -> void:
	_counts.clear()
	var space: PhysicsDirectSpaceState3D = get_world_3d().direct_space_state
	if _is_something_near(space):
		_query.shape = _cell
		for cell: int in grid_size_x * grid_size_z:
			_query.transform = global_transform.translated_local(_centre(cell))
			_counts.add(
				cell, space.intersect_shape(_query, RLAddon.GridCounts.MAX_HITS), _layers_of
			)
	if _lines:
		_show_cells()


## One query for the whole grid first; it is often empty.
func _is_something_near(space: PhysicsDirectSpaceState3D) -> bool:
	var middle: Vector3 = 0.5 * (_centre(0) + _centre(grid_size_x * grid_size_z - 1))
	_query.shape = _whole
	_query.transform = global_transform.translated_local(middle)
	return not space.intersect_shape(_query, 1).is_empty()


## The layers of a hit, from the server: not every node that makes bodies has a layer property.
func _layers_of(hit: Dictionary) -> int:
	if hit.collider is Area3D:
		return PhysicsServer3D.area_get_collision_layer(hit.rid)
	return PhysicsServer3D.body_get_collision_layer(hit.rid)


## The centre of a cell in the sensor's frame; the sensor is in the middle cell.
@warning_ignore("integer_division")
func _centre(cell: int) -> Vector3:
	var column: int = cell / grid_size_z - grid_size_x / 2
	var row: int = cell % grid_size_z - grid_size_z / 2
	return Vector3(column * cell_width, 0.0, row * cell_width)


## Called when an exported property changes.
func _update() -> void:
	_counts.set_up(detection_mask, grid_size_x * grid_size_z)
	_cell.size = Vector3(cell_width, cell_height, cell_width)
	_whole.size = Vector3(grid_size_x, 1.0, grid_size_z) * _cell.size
	_query.collision_mask = detection_mask
	_query.collide_with_areas = collide_with_areas
	_query.collide_with_bodies = collide_with_bodies
	update_configuration_warnings()
	if debug_view and RLAddon.SensorDrawing.is_seen(self, true):
		if not _lines:
			_lines = RLAddon.SensorLines3D.new()
			add_child(_lines, false, Node.INTERNAL_MODE_BACK)
		_show_cells()
	elif _lines:
		_lines.queue_free()
		_lines = null


## The twelve edges of every cell.
func _show_cells() -> void:
	var points: PackedVector3Array = []
	var colors: PackedColorArray = []
	for cell: int in grid_size_x * grid_size_z:
		var color: Color = _counts.color(cell)
		var box: AABB = AABB(_centre(cell) - 0.5 * _cell.size, _cell.size).grow(-0.02)
		for corner: int in 8:
			for axis_bit: int in [1, 2, 4]:
				if not corner & axis_bit:
					points.append_array(
						[box.get_endpoint(corner), box.get_endpoint(corner | axis_bit)]
					)
					colors.append_array([color, color])
	_lines.show_lines(points, colors)
