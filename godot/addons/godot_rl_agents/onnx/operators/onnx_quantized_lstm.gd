class_name OnnxQuantizedLstm
extends OnnxRecurrent
## DynamicQuantizeLSTM, which onnxruntime's dynamic quantization makes of an LSTM: weights are
## stored as whole numbers, (directions, input, gates), with a scale and a zero point each.


func compute(given: Array[OnnxTensor]) -> Array[OnnxTensor]:
	if not has_inputs(given, 12, 12):
		return []
	var plain: Array[OnnxTensor] = given.slice(0, 8)
	for index: int in [1, 2]:
		plain[index] = _restored(given[index], given[6 + 2 * index], given[7 + 2 * index])
		if error:
			return []
	return super(plain)


func _restored(weights: OnnxTensor, scale: OnnxTensor, zero: OnnxTensor) -> OnnxTensor:
	if weights.is_float() or weights.rank() != 3 or not may_make(weights.dims, 4):
		fail("its weights are %s" % weights.describe())
		return null
	var numbers: PackedFloat32Array = []
	var depth: int = weights.dims[1]
	var gates: int = weights.dims[2]
	var directions: int = weights.dims[0]
	for part: OnnxTensor in [scale, zero]:
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
	return OnnxTensor.of_floats(numbers, [directions, gates, depth])
