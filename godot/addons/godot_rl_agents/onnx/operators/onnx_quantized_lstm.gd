extends RLRuntime.OnnxRecurrent
## DynamicQuantizeLSTM, which onnxruntime's dynamic quantization makes of an LSTM: weights are
## stored as whole numbers, (directions, input, gates), with a scale and a zero point each.
## Inputs and states stay floats, where onnxruntime rounds them to 255 steps.

## The input's and the state's weights as floats.
var _plain: Array[RLRuntime.OnnxTensor] = []


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if given.size() != 12 or not has_inputs(given, 3, 12):
		return fail("it has %d inputs" % given.size())
	if _plain.is_empty() or not _is_kept:
		_plain = []
		for index: int in [1, 2]:
			_plain.append(_restored(given[index], given[6 + 2 * index], given[7 + 2 * index]))
			if error:
				_plain = []
				return []
	var floating: Array[RLRuntime.OnnxTensor] = given.slice(0, 8)
	floating[1] = _plain[0]
	floating[2] = _plain[1]
	return super(floating)


func _restored(
	weights: RLRuntime.OnnxTensor, scale: RLRuntime.OnnxTensor, zero: RLRuntime.OnnxTensor
) -> RLRuntime.OnnxTensor:
	if not scale or not zero or not scale.is_float() or zero.is_float():
		fail("its scale or zero point is missing")
		return null
	if weights.is_float() or weights.rank() != 3 or not may_make(weights.dims, 4):
		fail("its weights are %s" % weights.describe())
		return null
	var numbers: PackedFloat32Array = []
	var depth: int = weights.dims[1]
	var gates: int = weights.dims[2]
	var directions: int = weights.dims[0]
	for part: RLRuntime.OnnxTensor in [scale, zero]:
		if part.count() not in [directions, directions * gates]:
			fail("its scale or zero point is %s" % part.describe())
			return null
	var scales: PackedFloat32Array = scale.as_floats()
	var zeros: PackedFloat32Array = zero.as_floats()
	var scale_step: int = 1 if scales.size() == directions * gates and gates > 1 else 0
	var zero_step: int = 1 if zeros.size() == directions * gates and gates > 1 else 0
	for direction: int in directions:
		for gate: int in gates:
			var factor: float = scales[direction * gates + gate if scale_step else direction]
			var centre: float = zeros[direction * gates + gate if zero_step else direction]
			for row: int in depth:
				var value: int = weights.ints[(direction * depth + row) * gates + gate]
				numbers.append((value - centre) * factor)
	return RLRuntime.OnnxTensor.of_floats(numbers, [directions, gates, depth])
