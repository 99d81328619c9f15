@tool
extends RefCounted
## An input or output of a model: its name, type and shape.

var name: String = ""
var type: int = RLRuntime.OnnxTensor.Type.UNDEFINED
## Sizes; -1 where any size will do, such as the number of agents.
var dims: PackedInt64Array = []
## Whether the file says what shape it has.
var has_shape: bool = false
## The names of the sizes that are free, "" where it has none.
var free: PackedStringArray = []


func describe() -> String:
	var shape: String = RLRuntime.OnnxShape.text(dims) if has_shape else "any shape"
	return "%s (%s %s)" % [name, RLRuntime.OnnxTensor.type_name(type), shape]


## The same with every free size set to `size`.
func filled(size: int) -> PackedInt64Array:
	var shape: PackedInt64Array = dims.duplicate()
	for axis: int in shape.size():
		if shape[axis] < 0:
			shape[axis] = size
	return shape
