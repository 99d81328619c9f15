extends RLRuntime.OnnxStep
## Operators that make tensors of nothing but numbers: Constant, ConstantOfShape, Range, OneHot.

## Elements of the longest range.
const LONGEST: float = 1e7

var _value: RLRuntime.OnnxTensor
var _axis: int = -1


func prepare() -> void:
	match node.op:
		"Constant":
			_value = _constant()
			if not _value and not node.error:
				fail("its value cannot be run")
		"ConstantOfShape":
			_value = node.tensor("value")
			if not _value:
				_value = RLRuntime.OnnxTensor.zeros([1])
			if _value.count() != 1:
				fail("its value is %s" % _value.describe())
		"OneHot":
			_axis = node.whole("axis", -1)


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	match node.op:
		"ConstantOfShape":
			return _of_shape(given)
		"Range":
			return _range(given)
		"OneHot":
			return _one_hot(given)
	return [_value]


func _constant() -> RLRuntime.OnnxTensor:
	if node.has("value_float"):
		return RLRuntime.OnnxTensor.of_floats([node.real("value_float")], [])
	if node.has("value_int"):
		return RLRuntime.OnnxTensor.of_ints([node.whole("value_int")], [])
	if node.has("value_floats"):
		var reals: PackedFloat32Array = node.reals("value_floats")
		return RLRuntime.OnnxTensor.of_floats(reals, [reals.size()])
	if node.has("value_ints"):
		var wholes: PackedInt64Array = node.wholes("value_ints")
		return RLRuntime.OnnxTensor.of_ints(wholes, [wholes.size()])
	return node.tensor("value")


func _of_shape(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, 1):
		return []
	var shape: PackedInt64Array = list_of(given, 0, [])
	if error or not may_make(shape):
		return []
	return [RLRuntime.OnnxShape.spread(_value.reshaped([]), shape)]


func _range(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 3, 3):
		return []
	var ends: PackedFloat64Array = []
	for tensor: RLRuntime.OnnxTensor in given:
		if tensor.count() != 1 or tensor.type != given[0].type:
			return fail("%s does not go with it" % tensor.describe())
		ends.append(tensor.floats[0] if tensor.is_float() else float(tensor.ints[0]))
	var size: float = ceilf((ends[1] - ends[0]) / ends[2]) if ends[2] != 0.0 else NAN
	if not size < LONGEST:
		return fail("from %s to %s by %s" % [ends[0], ends[1], ends[2]])
	var shape: PackedInt64Array = [maxi(int(size), 0)]
	if not may_make(shape):
		return []
	var made: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.zeros(shape, given[0].type)
	for index: int in shape[0]:
		if made.is_float():
			made.floats[index] = ends[0] + index * ends[2]
		else:
			made.ints[index] = given[0].ints[0] + index * given[2].ints[0]
	return [made]


func _one_hot(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 3, 3):
		return []
	if given[1].count() != 1 or given[2].count() != 2:
		return fail("its depth is %s" % given[1].describe())
	var depth: int = int(given[1].as_floats()[0])
	var axis: int = axis_in(_axis, given[0].rank() + 1)
	if error:
		return []
	var shape: PackedInt64Array = given[0].dims.duplicate()
	shape.insert(axis, depth)
	if not may_make(shape):
		return []
	var inner: int = RLRuntime.OnnxShape.count(given[0].dims.slice(axis))
	var chosen: PackedFloat32Array = given[0].as_floats()
	var places: PackedInt64Array = []
	places.resize(RLRuntime.OnnxShape.count(shape))
	for index: int in chosen.size():
		var wanted: int = int(chosen[index])
		wanted += depth if wanted < 0 else 0
		if wanted >= 0 and wanted < depth:
			places[(index / inner * depth + wanted) * inner + index % inner] = 1
	return [given[2].taken(places, shape)]
