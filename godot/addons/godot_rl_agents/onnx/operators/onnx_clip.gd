extends RLRuntime.OnnxStep
## Clip: bounds are attributes before opset 11, then inputs.

var _low: float = -INF
var _high: float = INF


func prepare() -> void:
	if opset < 11:
		_low = node.real("min", -INF)
		_high = node.real("max", INF)


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, 1 if opset < 11 else 3) or not may_make(given[0].dims):
		return []
	var tensor: RLRuntime.OnnxTensor = given[0]
	for index: int in range(1, given.size()):
		if given[index] and (given[index].count() != 1 or given[index].type != tensor.type):
			return fail("a bound is %s" % given[index].describe())
	return [_float_clip(tensor, given) if tensor.is_float() else _int_clip(tensor, given)]


func _float_clip(
	tensor: RLRuntime.OnnxTensor, given: Array[RLRuntime.OnnxTensor]
) -> RLRuntime.OnnxTensor:
	var lowest: RLRuntime.OnnxTensor = optional(given, 1)
	var highest: RLRuntime.OnnxTensor = optional(given, 2)
	var low: float = lowest.floats[0] if lowest else _low
	var high: float = highest.floats[0] if highest else _high
	var made: PackedFloat32Array = tensor.floats.duplicate()
	for index: int in made.size():
		made[index] = minf(maxf(made[index], low), high)
	return RLRuntime.OnnxTensor.of_floats(made, tensor.dims, tensor.type)


func _int_clip(
	tensor: RLRuntime.OnnxTensor, given: Array[RLRuntime.OnnxTensor]
) -> RLRuntime.OnnxTensor:
	var lowest: RLRuntime.OnnxTensor = optional(given, 1)
	var highest: RLRuntime.OnnxTensor = optional(given, 2)
	var made: PackedInt64Array = tensor.ints.duplicate()
	for index: int in made.size():
		if lowest:
			made[index] = maxi(made[index], lowest.ints[0])
		if highest:
			made[index] = mini(made[index], highest.ints[0])
	return RLRuntime.OnnxTensor.of_ints(made, tensor.dims, tensor.type)
