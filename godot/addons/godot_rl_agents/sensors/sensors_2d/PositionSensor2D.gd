@tool
class_name PositionSensor2D
extends ISensor2D
## Where things are, seen from the sensor and turned with it.
##
## Of each object the chosen parts of its relative place, in units of `max_distance` and no longer
## than 1. With `use_separate_direction`: of the direction alone, which has the length 1, and then
## the distance, at most 1. An object that is gone gives zeros.

@export var objects_to_observe: Array[Node2D]:
	set(value):
		objects_to_observe = value
		update_configuration_warnings()
@export var include_x: bool = true
@export var include_y: bool = true
## The distance that counts as 1; no larger than needed, or the numbers become very small.
@export_range(0.01, 20_000) var max_distance: float = 1.0
## Give direction and distance instead of the place.
@export var use_separate_direction: bool = false
## Draw a line to each object in the game.
@export var debug_lines: bool = true
@export var debug_color: Color = Color.GREEN

## Where they were last, unscaled.
var _seen: PackedVector2Array = []


func _draw() -> void:
	for place: Vector2 in _seen:
		draw_line(Vector2.ZERO, place, debug_color, 1.0)


func _get_configuration_warnings() -> PackedStringArray:
	var warnings: PackedStringArray = []
	if objects_to_observe.is_empty():
		warnings.append("objects_to_observe is empty: the sensor sees nothing.")
	if null in objects_to_observe:
		warnings.append("objects_to_observe has an empty place, which gives zeros.")
	if not (include_x or include_y):
		warnings.append("No axis is included: the sensor sees no place and no direction.")
	return warnings


func get_observation() -> Array[float]:
	var numbers: Array[float] = []
	var places: PackedVector2Array = []
	for index: int in objects_to_observe.size():
		var place: Vector2 = _place_of(objects_to_observe[index])
		places.append(place)
		if use_separate_direction:
			_append_parts(numbers, place.normalized())
			numbers.append(minf(place.length() / max_distance, 1.0))
		else:
			_append_parts(numbers, place.limit_length(max_distance) / max_distance)
	if debug_lines and RLAddon.SensorDrawing.is_seen(self, true):
		_show(places)
	return numbers


## In the sensor's frame; untyped, since a typed parameter refuses what was freed.
func _place_of(object: Variant) -> Vector2:
	if is_instance_valid(object) and object.is_inside_tree():
		return to_local(object.global_position)
	return Vector2.ZERO


func _append_parts(numbers: Array[float], vector: Vector2) -> void:
	if include_x:
		numbers.append(vector.x)
	if include_y:
		numbers.append(vector.y)


func _show(places: PackedVector2Array) -> void:
	_seen = places
	queue_redraw()
