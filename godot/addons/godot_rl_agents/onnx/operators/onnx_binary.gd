extends RLRuntime.OnnxStep
## Operators that join two tensors, or several, number by number, one repeated to fit the other.

const SEVERAL: PackedStringArray = ["Min", "Max", "Sum", "Mean"]
const COMPARING: PackedStringArray = [
	"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "And", "Or", "Xor"
]

var _is_fmod: bool = false


func prepare() -> void:
	if node.op == "Mod":
		_is_fmod = node.whole("fmod") != 0


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	var is_several: bool = node.op in SEVERAL
	if not has_inputs(given, 1 if is_several else 2, 64 if is_several else 2):
		return []
	var joined: RLRuntime.OnnxTensor = given[0]
	for index: int in range(1, given.size()):
		if not given[index]:
			return fail("input %d is missing" % index)
		joined = _join(joined, given[index])
		if error:
			return []
	if node.op == "Mean" and is_floating(joined):
		var mean: PackedFloat32Array = joined.floats.duplicate()
		for index: int in mean.size():
			mean[index] /= given.size()
		joined = RLRuntime.OnnxTensor.of_floats(mean, joined.dims, joined.type)
	return [joined]


func _join(left: RLRuntime.OnnxTensor, right: RLRuntime.OnnxTensor) -> RLRuntime.OnnxTensor:
	if left.type != right.type and not (node.op == "Pow" and left.is_float()):
		fail("%s does not go with %s" % [left.describe(), right.describe()])
		return null
	var shape: PackedInt64Array = RLRuntime.OnnxShape.broadcast(left.dims, right.dims)
	if shape.has(-1):
		fail("%s does not go with %s" % [left.describe(), right.describe()])
		return null
	if not may_make(shape):
		return null
	var first: RLRuntime.OnnxTensor = RLRuntime.OnnxShape.spread(left, shape)
	var second: RLRuntime.OnnxTensor = RLRuntime.OnnxShape.spread(right, shape)
	if node.op in COMPARING:
		return RLRuntime.OnnxTensor.of_ints(
			_compared(first, second), shape, RLRuntime.OnnxTensor.Type.BOOL
		)
	if left.is_float():
		var made: PackedFloat32Array = _of_floats(first.floats, second.as_floats())
		return RLRuntime.OnnxTensor.of_floats(made, shape, left.type)
	return RLRuntime.OnnxTensor.of_ints(
		_of_ints(first.ints, second.ints, left.type), shape, left.type
	)


func _of_floats(a: PackedFloat32Array, b: PackedFloat32Array) -> PackedFloat32Array:
	var size: int = a.size()
	var made: PackedFloat32Array = []
	made.resize(size)
	match node.op:
		"Add", "Sum", "Mean":
			for index: int in size:
				made[index] = a[index] + b[index]
		"Sub":
			for index: int in size:
				made[index] = a[index] - b[index]
		"Mul":
			for index: int in size:
				made[index] = a[index] * b[index]
		"Div":
			for index: int in size:
				made[index] = a[index] / b[index]
		"Min":
			for index: int in size:
				made[index] = minf(a[index], b[index])
		"Max":
			for index: int in size:
				made[index] = maxf(a[index], b[index])
		"Pow":
			for index: int in size:
				made[index] = pow(a[index], b[index])
		"PRelu":
			for index: int in size:
				made[index] = a[index] if a[index] >= 0.0 else a[index] * b[index]
		"Mod":
			for index: int in size:
				made[index] = fmod(a[index], b[index])
	return made


func _of_ints(a: PackedInt64Array, b: PackedInt64Array, type: int) -> PackedInt64Array:
	var size: int = a.size()
	var made: PackedInt64Array = []
	made.resize(size)
	match node.op:
		"Add", "Sum":
			for index: int in size:
				made[index] = a[index] + b[index]
		"Sub":
			for index: int in size:
				made[index] = a[index] - b[index]
		"Mul":
			for index: int in size:
				made[index] = a[index] * b[index]
		"Div":
			for index: int in size:
				made[index] = divided(a[index], b[index])
		"Mod":
			for index: int in size:
				made[index] = _remainder(a[index], b[index])
		"Min":
			for index: int in size:
				made[index] = mini(a[index], b[index])
		"Max":
			for index: int in size:
				made[index] = maxi(a[index], b[index])
		"Pow":
			for index: int in size:
				made[index] = int(pow(a[index], b[index]))
		_:
			fail("it cannot work on %s" % RLRuntime.OnnxTensor.type_name(type))
	if type != RLRuntime.OnnxTensor.Type.INT64:
		for index: int in size:
			made[index] = RLRuntime.OnnxTensor.wrapped(made[index], type)
	return made


func _compared(left: RLRuntime.OnnxTensor, right: RLRuntime.OnnxTensor) -> PackedInt64Array:
	if node.op in ["And", "Or", "Xor"]:
		return _logical(left, right)
	var made: PackedInt64Array = []
	made.resize(left.count())
	var a: PackedFloat64Array = _as_doubles(left)
	var b: PackedFloat64Array = _as_doubles(right)
	match node.op:
		"Equal":
			for index: int in made.size():
				made[index] = int(a[index] == b[index])
		"Greater":
			for index: int in made.size():
				made[index] = int(a[index] > b[index])
		"Less":
			for index: int in made.size():
				made[index] = int(a[index] < b[index])
		"GreaterOrEqual":
			for index: int in made.size():
				made[index] = int(a[index] >= b[index])
		"LessOrEqual":
			for index: int in made.size():
				made[index] = int(a[index] <= b[index])
	return made


func _logical(left: RLRuntime.OnnxTensor, right: RLRuntime.OnnxTensor) -> PackedInt64Array:
	if left.type != RLRuntime.OnnxTensor.Type.BOOL:
		fail("it cannot work on %s" % left.describe())
		return []
	var made: PackedInt64Array = left.ints.duplicate()
	for index: int in made.size():
		match node.op:
			"And":
				made[index] &= right.ints[index]
			"Or":
				made[index] |= right.ints[index]
			"Xor":
				made[index] ^= right.ints[index]
	return made


func _as_doubles(tensor: RLRuntime.OnnxTensor) -> PackedFloat64Array:
	var values: PackedFloat64Array = []
	values.resize(tensor.count())
	if tensor.is_float():
		for index: int in values.size():
			values[index] = tensor.floats[index]
	else:
		for index: int in values.size():
			values[index] = tensor.ints[index]
	return values


func _remainder(a: int, b: int) -> int:
	if b == 0 or b == -1:
		return 0
	var rest: int = a % b
	return rest + b if not _is_fmod and rest != 0 and (rest < 0) != (b < 0) else rest


## Rounded towards zero. The least whole number divided by -1 would end the process.
static func divided(a: int, b: int) -> int:
	if b == 0:
		return 0
	return -a if b == -1 else a / b
