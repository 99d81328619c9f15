@tool
class_name TagLayout
extends RefCounted
## The boxes of an arena, read from JSON and derived as docs/physics.md says.

## Numbers of a box in `numbers`, each for x, y and z.
enum Part {
	LOW = 0, HIGH = 3, GROWN_LOW = 6, GROWN_HIGH = 9, STOP_LOW = 12, STOP_HIGH = 15, MIDDLE = 18
}

const FOLDER: String = "res://tag/layouts/"
const STRIDE: int = 21

var name: String = ""
var error: String = ""
var count: int = 0
## `count` boxes of STRIDE numbers each.
var numbers: PackedFloat64Array = []
## The same as the file has them.
var boxes: Array = []


## A layout of the game by name, or any by its file.
static func read(spec: String, rules: TagRules) -> TagLayout:
	var path: String = spec if spec.ends_with(".json") else FOLDER + spec + ".json"
	var json: JSON = JSON.new()
	var layout: TagLayout = TagLayout.new()
	if not FileAccess.file_exists(path):
		layout.error = "no layout '%s': there is no %s" % [spec, path]
	elif json.parse(FileAccess.get_file_as_string(path)) != OK:
		layout.error = "%s is not valid JSON: %s" % [path, json.get_error_message()]
	else:
		layout = of(json.data, path, rules)
	layout.name = spec.get_file().get_basename()
	return layout


## A layout from what such a file holds; `path` is for the message if something is wrong.
static func of(data: Variant, path: String, rules: TagRules) -> TagLayout:
	var layout: TagLayout = TagLayout.new()
	if not data is Dictionary or not data.get("boxes") is Array:
		layout.error = "%s has no list of boxes" % path
	else:
		layout._take(data.boxes, path, rules)
	return layout


## Whether a value of a JSON file is a list of `wanted` finite numbers.
static func is_numbers(value: Variant, wanted: int) -> bool:
	if not value is Array or value.size() != wanted:
		return false
	return value.all(
		func(part: Variant) -> bool: return (part is float or part is int) and is_finite(part)
	)


## Centre of a box, for those who draw it.
func centre(index: int) -> Vector3:
	var base: int = index * STRIDE + Part.MIDDLE
	return Vector3(numbers[base], numbers[base + 1], numbers[base + 2])


## Extent of a box, for those who draw it.
func extent(index: int) -> Vector3:
	var base: int = index * STRIDE
	return Vector3(
		numbers[base + 3] - numbers[base],
		numbers[base + 4] - numbers[base + 1],
		numbers[base + 5] - numbers[base + 2]
	)


func _take(given: Array, path: String, rules: TagRules) -> void:
	for index: int in given.size():
		var box: Variant = given[index]
		if not box is Dictionary or not is_numbers(box.get("at_m"), 2):
			error = "%s: boxes[%d]: at_m is not two numbers" % [path, index]
		elif not is_numbers(box.get("size_m"), 3):
			error = "%s: boxes[%d]: size_m is not three numbers" % [path, index]
		if error:
			return
		boxes.append({"at_m": box.at_m, "size_m": box.size_m})
		_add(box, rules)


func _add(box: Dictionary, rules: TagRules) -> void:
	var x: float = box.at_m[0]
	var z: float = box.at_m[1]
	var width: float = box.size_m[0]
	var height: float = box.size_m[1]
	var depth: float = box.size_m[2]
	var low: Array[float] = [x - width * 0.5, 0.0, z - depth * 0.5]
	var high: Array[float] = [x + width * 0.5, height, z + depth * 0.5]
	var base: int = count * STRIDE
	numbers.resize(base + STRIDE)
	for axis: int in 3:
		numbers[base + axis] = low[axis]
		numbers[base + Part.HIGH + axis] = high[axis]
		numbers[base + Part.GROWN_LOW + axis] = low[axis] - rules.half
		numbers[base + Part.GROWN_HIGH + axis] = high[axis] + rules.half
		numbers[base + Part.STOP_LOW + axis] = low[axis] - rules.half - rules.skin
		numbers[base + Part.STOP_HIGH + axis] = high[axis] + rules.half + rules.skin
		numbers[base + Part.MIDDLE + axis] = (low[axis] + high[axis]) * 0.5
	count += 1
