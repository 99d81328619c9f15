extends RLRuntime.OnnxStep
## QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and MatMulInteger.
##
## Products of whole numbers go through float blocks, which are exact as long as the sums stay
## below 2^24.

const RANGES: Dictionary[int, Vector2i] = {
	RLRuntime.OnnxTensor.Type.UINT8: Vector2i(0, 255),
	RLRuntime.OnnxTensor.Type.INT8: Vector2i(-128, 127),
	RLRuntime.OnnxTensor.Type.UINT16: Vector2i(0, 65535),
	RLRuntime.OnnxTensor.Type.INT16: Vector2i(-32768, 32767),
}

## Whether a QuantizeLinear has taken in the DequantizeLinear that follows: floats come out.
var is_rounding: bool = false

var _axis: int = 1
var _type: int = RLRuntime.OnnxTensor.Type.UNDEFINED
var _dense: RLRuntime.OnnxDense


func prepare() -> void:
	if node.op in ["QuantizeLinear", "DequantizeLinear"]:
		_axis = node.whole("axis", 1)
		node.ignore(["saturate"])
		if node.whole("block_size") != 0:
			fail("its block_size cannot be run")
		if node.op == "QuantizeLinear":
			_type = node.whole("output_dtype")


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	match node.op:
		"QuantizeLinear":
			return _quantize(given)
		"DequantizeLinear":
			return _dequantize(given)
		"MatMulInteger":
			return _product(given)
	return _dynamic(given)


## Take in the step that undoes this one; false if it does anything else.
func absorb_inverse(other: RLRuntime.OnnxStep) -> bool:
	if node.op != "QuantizeLinear" or other.node.op != "DequantizeLinear" or is_rounding:
		return false
	if known.size() != 3 or other.known.size() != 3 or outputs[0] != other.inputs[0]:
		return false
	for index: int in [1, 2]:
		if not known[index] or not other.known[index] or known[index].count() != 1:
			return false
		if known[index].as_floats() != other.known[index].as_floats():
			return false
	is_rounding = true
	return true


## The numbers of a quantized tensor less its zero point, as floats; the zero point is one number,
## or one for each place along `axis`.
static func centred(
	step: RLRuntime.OnnxStep, tensor: RLRuntime.OnnxTensor, zero: RLRuntime.OnnxTensor, axis: int
) -> RLRuntime.OnnxTensor:
	var numbers: PackedFloat32Array = tensor.as_floats()
	if zero and zero.is_float():
		step.fail("its zero point is %s" % zero.describe())
		return tensor
	if zero:
		var centre: PackedFloat32Array = along(step, zero.as_floats(), tensor, axis)
		if step.error:
			return tensor
		for index: int in numbers.size():
			numbers[index] -= centre[index]
	return RLRuntime.OnnxTensor.of_floats(numbers, tensor.dims)


## Numbers, one or one for each place along an axis, repeated to the tensor's shape.
static func along(
	step: RLRuntime.OnnxStep, numbers: PackedFloat32Array, tensor: RLRuntime.OnnxTensor, axis: int
) -> PackedFloat32Array:
	var shape: PackedInt64Array = []
	if numbers.size() != 1:
		var place: int = step.axis_in(axis, tensor.rank())
		if step.error or tensor.dims[place] != numbers.size():
			step.fail("%d numbers along axis %d of %s" % [numbers.size(), axis, tensor.describe()])
			return []
		shape.resize(tensor.rank() - place)
		shape.fill(1)
		shape[0] = numbers.size()
	return (
		RLRuntime
		. OnnxShape
		. spread(RLRuntime.OnnxTensor.of_floats(numbers, shape), tensor.dims)
		. floats
	)


func _quantize(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 2, 3) or not is_floating(given[0]) or not is_floating(given[1]):
		return []
	var zero: RLRuntime.OnnxTensor = optional(given, 2)
	var type: int = zero.type if zero else (_type if _type else RLRuntime.OnnxTensor.Type.UINT8)
	if not RANGES.has(type) or not may_make(given[0].dims, 2):
		return fail("it makes %s" % RLRuntime.OnnxTensor.type_name(type))
	if is_rounding:
		var middle: float = zero.as_floats()[0]
		return [_stepped(given[0], given[1].floats[0], middle, RANGES[type])]
	var scale: PackedFloat32Array = along(self, given[1].floats, given[0], _axis)
	var centre: PackedFloat32Array = [0.0]
	centre = along(self, zero.as_floats() if zero else centre, given[0], _axis)
	if error:
		return []
	return [_rounded(given[0], scale, centre, type)]


## Quantized and back: the nearest of the numbers that can be said.
func _stepped(
	tensor: RLRuntime.OnnxTensor, scale: float, centre: float, bounds: Vector2i
) -> RLRuntime.OnnxTensor:
	var least: float = bounds.x - centre
	var largest: float = bounds.y - centre
	var made: PackedFloat32Array = tensor.floats.duplicate()
	for index: int in made.size():
		# rounded to a float32 here, as below
		made[index] = made[index] / scale
		var quotient: float = made[index]
		var whole: float = roundf(quotient)
		if absf(quotient - whole) == 0.5:
			whole = 2.0 * roundf(0.5 * quotient)
		made[index] = clampf(whole, least, largest) * scale
	return RLRuntime.OnnxTensor.of_floats(made, tensor.dims)


func _rounded(
	tensor: RLRuntime.OnnxTensor, scale: PackedFloat32Array, centre: PackedFloat32Array, type: int
) -> RLRuntime.OnnxTensor:
	var bounds: Vector2i = RANGES[type]
	# a quotient is rounded to a float32 before it is rounded to a whole number
	var quotients: PackedFloat32Array = tensor.floats.duplicate()
	var made: PackedInt64Array = []
	made.resize(quotients.size())
	for index: int in quotients.size():
		quotients[index] = quotients[index] / scale[index]
		var whole: float = RLRuntime.OnnxUnary.round_even(quotients[index]) + centre[index]
		made[index] = int(clampf(whole, bounds.x, bounds.y))
	return RLRuntime.OnnxTensor.of_ints(made, tensor.dims, type)


func _dequantize(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 2, 3) or not is_floating(given[1]) or given[0].is_float():
		return fail("it cannot work on %s" % (given[0].describe() if given and given[0] else "?"))
	if not may_make(given[0].dims, 2):
		return []
	var scale: PackedFloat32Array = along(self, given[1].floats, given[0], _axis)
	var made: RLRuntime.OnnxTensor = centred(self, given[0], optional(given, 2), _axis)
	if error:
		return []
	for index: int in made.floats.size():
		made.floats[index] *= scale[index]
	return [made]


func _dynamic(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, 1) or not is_floating(given[0]) or not may_make(given[0].dims, 3):
		return []
	var least: float = 0.0
	var largest: float = 0.0
	for value: float in given[0].floats:
		least = minf(least, value)
		largest = maxf(largest, value)
	var scale: PackedFloat32Array = [(largest - least) / 255.0]
	if scale[0] == 0.0:
		scale[0] = 1.0
	var centre: PackedFloat32Array = [-least / scale[0]]
	centre[0] = clampf(RLRuntime.OnnxUnary.round_even(centre[0]), 0.0, 255.0)
	var scales: PackedFloat32Array = along(self, scale, given[0], 0)
	var centres: PackedFloat32Array = along(self, centre, given[0], 0)
	var type: int = RLRuntime.OnnxTensor.Type.UINT8
	return [
		_rounded(given[0], scales, centres, type),
		RLRuntime.OnnxTensor.of_floats(scale, []),
		RLRuntime.OnnxTensor.of_ints([int(centre[0])], [], type),
	]


func _product(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 2, 4):
		return []
	var left: RLRuntime.OnnxTensor = given[0]
	var right: RLRuntime.OnnxTensor = given[1]
	var depth: int = left.dims[-1] if left.rank() > 0 else -1
	if left.is_float() or right.is_float() or right.rank() != 2 or right.dims[0] != depth:
		return fail("%s does not go with %s" % [left.describe(), right.describe()])
	var shape: PackedInt64Array = left.dims.duplicate()
	shape[-1] = right.dims[1]
	if not may_make(shape, 1 + depth / 16) or not may_make(left.dims):
		return []
	_pack(right, optional(given, 3))
	if error:
		return []
	var numbers: RLRuntime.OnnxTensor = centred(self, left, optional(given, 2), left.rank() - 2)
	if error:
		return []
	var rows: int = RLRuntime.OnnxShape.count(left.dims.slice(0, left.rank() - 1))
	var made: PackedFloat32Array = _dense.multiply(numbers.floats, rows)
	return [
		RLRuntime.OnnxCast.cast(
			RLRuntime.OnnxTensor.of_floats(made, shape), RLRuntime.OnnxTensor.Type.INT32
		)
	]


## Make the matrix ready; once, if it is constant.
func _pack(weights: RLRuntime.OnnxTensor, zero: RLRuntime.OnnxTensor) -> void:
	var is_kept: bool = known[1] != null and (not zero or known[3] != null)
	if (_dense and is_kept) or not may_make(weights.dims, 2):
		return
	var numbers: RLRuntime.OnnxTensor = centred(self, weights, zero, 1)
	if not error:
		_dense = RLRuntime.OnnxDense.new(numbers.floats, weights.dims[0], weights.dims[1])
