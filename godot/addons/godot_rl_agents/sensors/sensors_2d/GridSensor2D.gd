@tool
class_name GridSensor2D
extends ISensor2D
## Counts the bodies and areas in each cell of a grid around the sensor, per collision layer.
##
## Column by column (x), in each row by row (y), in each cell one number for every layer of
## `detection_mask`, the lowest first. The cells are queried when `get_observation` is called.
## Static bodies are counted, too.

## Draw the cells in the editor and in the game.
@export var debug_view: bool = false:
	set(value):
		debug_view = value
		_update()
## Layers to count.
@export_flags_2d_physics var detection_mask: int = 0:
	set(value):
		detection_mask = value
		_update()
@export var collide_with_areas: bool = false:
	set(value):
		collide_with_areas = value
		_update()
@export var collide_with_bodies: bool = true:
	set(value):
		collide_with_bodies = value
		_update()
@export_range(1.0, 200.0, 0.1, "or_greater", "suffix:px") var cell_width: float = 20.0:
	set(value):
		cell_width = value
		_update()
@export_range(1.0, 200.0, 0.1, "or_greater", "suffix:px") var cell_height: float = 20.0:
	set(value):
		cell_height = value
		_update()
@export_range(1, 21, 2, "or_greater") var grid_size_x: int = 3:
	set(value):
		grid_size_x = value
		_update()
@export_range(1, 21, 2, "or_greater") var grid_size_y: int = 3:
	set(value):
		grid_size_y = value
		_update()

var _counts: RLAddon.GridCounts = RLAddon.GridCounts.new()
var _cell: RectangleShape2D = RectangleShape2D.new()
var _whole: RectangleShape2D = RectangleShape2D.new()
var _query: PhysicsShapeQueryParameters2D = PhysicsShapeQueryParameters2D.new()
var _drawn: bool = false


func _ready() -> void:
	RLAddon.GridCounts.remove_saved_cells(self)
	_update()


func _draw() -> void:
	if not _drawn:
		return
	for cell: int in grid_size_x * grid_size_y:
		var color: Color = _counts.color(cell)
		draw_rect(Rect2(_centre(cell) - 0.5 * _cell.size, _cell.size).grow(-0.5), color)


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
	var space: PhysicsDirectSpaceState2D = get_world_2d().direct_space_state
	if _is_something_near(space):
		_query.shape = _cell
		for cell: int in grid_size_x * grid_size_y:
			_query.transform = global_transform.translated_local(_centre(cell))
			_counts.add(
				cell, space.intersect_shape(_query, RLAddon.GridCounts.MAX_HITS), _layers_of
			)
	if _drawn:
		queue_redraw()


## One query for the whole grid first; it is often empty.
func _is_something_near(space: PhysicsDirectSpaceState2D) -> bool:
	var middle: Vector2 = 0.5 * (_centre(0) + _centre(grid_size_x * grid_size_y - 1))
	_query.shape = _whole
	_query.transform = global_transform.translated_local(middle)
	return not space.intersect_shape(_query, 1).is_empty()


## The layers of a hit, from the server: not every node that makes bodies has a layer property.
func _layers_of(hit: Dictionary) -> int:
	if hit.collider is Area2D:
		return PhysicsServer2D.area_get_collision_layer(hit.rid)
	return PhysicsServer2D.body_get_collision_layer(hit.rid)


## The centre of a cell in the sensor's frame; the sensor is in the middle cell.
@warning_ignore("integer_division")
func _centre(cell: int) -> Vector2:
	var column: int = cell / grid_size_y - grid_size_x / 2
	var row: int = cell % grid_size_y - grid_size_y / 2
	return Vector2(column * cell_width, row * cell_height)


## Called when an exported property changes.
func _update() -> void:
	_counts.set_up(detection_mask, grid_size_x * grid_size_y)
	_cell.size = Vector2(cell_width, cell_height)
	_whole.size = Vector2(grid_size_x, grid_size_y) * _cell.size
	_query.collision_mask = detection_mask
	_query.collide_with_areas = collide_with_areas
	_query.collide_with_bodies = collide_with_bodies
	_drawn = debug_view and RLAddon.SensorDrawing.is_seen(self, true)
	queue_redraw()
	update_configuration_warnings()
