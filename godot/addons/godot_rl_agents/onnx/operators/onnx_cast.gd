extends RLRuntime.OnnxStep
## Cast and CastLike: the same numbers as another type.

var _type: int = RLRuntime.OnnxTensor.Type.UNDEFINED


func prepare() -> void:
	node.ignore(["saturate"])
	if node.op == "CastLike":
		return
	_type = node.whole("to")
	if not RLRuntime.OnnxTensor.is_known(_type):
		fail("it makes %s" % RLRuntime.OnnxTensor.type_name(_type))


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	var is_like: bool = node.op == "CastLike"
	if not has_inputs(given, 2 if is_like else 1, 2 if is_like else 1):
		return []
	if not may_make(given[0].dims):
		return []
	return [cast(given[0], given[1].type if is_like else _type)]


static func cast(tensor: RLRuntime.OnnxTensor, type: int) -> RLRuntime.OnnxTensor:
	if tensor.type == type:
		return tensor
	if type in RLRuntime.OnnxTensor.FLOATING:
		return RLRuntime.OnnxTensor.of_floats(tensor.as_floats(), tensor.dims, type)
	var made: PackedInt64Array = []
	made.resize(tensor.count())
	for index: int in made.size():
		if not tensor.is_float():
			made[index] = RLRuntime.OnnxTensor.wrapped(tensor.ints[index], type)
		elif type == RLRuntime.OnnxTensor.Type.BOOL:
			made[index] = 1 if tensor.floats[index] != 0.0 else 0
		else:
			made[index] = RLRuntime.OnnxTensor.wrapped(int(tensor.floats[index]), type)
	return RLRuntime.OnnxTensor.of_ints(made, tensor.dims, type)
