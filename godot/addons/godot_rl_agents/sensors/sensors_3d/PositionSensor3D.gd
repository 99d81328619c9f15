@tool
class_name PositionSensor3D
extends ISensor3D
## The positions of nodes relative to the sensor, in its frame.
##
## Of each object the chosen parts of its relative place, in units of `max_distance` and no longer
## than 1. With `use_separate_direction`: of the direction alone, which has the length 1, and then
## the distance, at most 1. An object that is gone gives zeros.

@export var objects_to_observe: Array[Node3D]:
	set(value):
		objects_to_observe = value
		update_configuration_warnings()
@export var include_x: bool = true
@export var include_y: bool = true
@export var include_z: bool = true
## The distance that counts as 1; no larger than needed, or the numbers become very small.
@export_range(0.01, 2_500) var max_distance: float = 1.0
## Give direction and distance instead of the place.
@export var use_separate_direction: bool = false
## Draw a line to each object in the game.
@export var debug_lines: bool = true
@export var debug_color: Color = Color.GREEN

## Made for the first line.
var _lines: RLAddon.SensorLines3D


func _get_configuration_warnings() -> PackedStringArray:
	return RLAddon.RelativePositions.warnings(self, _axes())


func get_observation() -> Array[float]:
	var places: Array = []
	for index: int in objects_to_observe.size():
		places.append(_place_of(objects_to_observe[index]))
	if debug_lines and RLAddon.SensorDrawing.is_seen(self, true):
		_show(places)
	return RLAddon.RelativePositions.numbers(self, places, _axes())


## In the sensor's frame; untyped, because a typed parameter rejects a freed object.
func _place_of(object: Variant) -> Vector3:
	if is_instance_valid(object) and object.is_inside_tree():
		return to_local(object.global_position)
	return Vector3.ZERO


func _axes() -> Array[int]:
	var axes: Array[int] = []
	if include_x:
		axes.append(Vector3.AXIS_X)
	if include_y:
		axes.append(Vector3.AXIS_Y)
	if include_z:
		axes.append(Vector3.AXIS_Z)
	return axes


func _show(places: Array) -> void:
	if not _lines:
		_lines = RLAddon.SensorLines3D.new()
		add_child(_lines, false, Node.INTERNAL_MODE_BACK)
	var points: PackedVector3Array = []
	for place: Vector3 in places:
		points.append_array([Vector3.ZERO, place])
	var colors: PackedColorArray = []
	colors.resize(points.size())
	colors.fill(debug_color)
	_lines.show_lines(points, colors)
