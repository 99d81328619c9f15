extends RLRuntime.OnnxStep
## Operators that make one number of many: ReduceSum and its kin, ArgMax, ArgMin.

var _axes: PackedInt64Array = []
var _keeps: bool = true
var _does_nothing: bool = false
var _takes_last: bool = false


func prepare() -> void:
	_keeps = node.whole("keepdims", 1) != 0
	if node.op in ["ArgMax", "ArgMin"]:
		_axes = [node.whole("axis")]
		_takes_last = node.whole("select_last_index") != 0
		return
	if opset < (13 if node.op == "ReduceSum" else 18):
		_axes = node.wholes("axes")
	else:
		_does_nothing = node.whole("noop_with_empty_axes") != 0


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, 2):
		return []
	var tensor: RLRuntime.OnnxTensor = given[0]
	var axes: PackedInt64Array = list_of(given, 1, _axes)
	if axes.is_empty() and _does_nothing:
		return [tensor]
	var is_reduced: Dictionary[int, bool] = {}
	for axis: int in axes:
		is_reduced[axis_in(axis, tensor.rank())] = true
	if error or not may_make(tensor.dims, 2):
		return []
	var shape: PackedInt64Array = []
	var outer: Array[PackedInt64Array] = []
	var inner: Array[PackedInt64Array] = []
	var strides: PackedInt64Array = RLRuntime.OnnxShape.strides(tensor.dims)
	for axis: int in tensor.rank():
		var list: PackedInt64Array = RLRuntime.OnnxShape.multiples(tensor.dims[axis], strides[axis])
		if axes.is_empty() or is_reduced.has(axis):
			inner.append(list)
			if _keeps:
				shape.append(1)
		else:
			outer.append(list)
			shape.append(tensor.dims[axis])
	if not may_make(shape):
		return []
	return [
		_reduced(
			tensor, shape, RLRuntime.OnnxShape.places(outer), RLRuntime.OnnxShape.places(inner)
		)
	]


func _reduced(
	tensor: RLRuntime.OnnxTensor,
	shape: PackedInt64Array,
	outer: PackedInt64Array,
	inner: PackedInt64Array
) -> RLRuntime.OnnxTensor:
	if node.op in ["ArgMax", "ArgMin"]:
		return RLRuntime.OnnxTensor.of_ints(_arguments(tensor, outer, inner), shape)
	if not tensor.is_float():
		return RLRuntime.OnnxTensor.of_ints(_of_ints(tensor, outer, inner), shape, tensor.type)
	var made: PackedFloat32Array = []
	made.resize(outer.size())
	for index: int in outer.size():
		made[index] = _of_floats(tensor.floats, outer[index], inner)
	return RLRuntime.OnnxTensor.of_floats(made, shape, tensor.type)


func _of_floats(values: PackedFloat32Array, base: int, inner: PackedInt64Array) -> float:
	var sum: float = 0.0
	match node.op:
		"ReduceSum", "ReduceMean", "ReduceLogSum":
			for offset: int in inner:
				sum += values[base + offset]
		"ReduceMax":
			sum = -INF
			for offset: int in inner:
				sum = maxf(sum, values[base + offset])
		"ReduceMin":
			sum = INF
			for offset: int in inner:
				sum = minf(sum, values[base + offset])
		"ReduceProd":
			sum = 1.0
			for offset: int in inner:
				sum *= values[base + offset]
		"ReduceL1":
			for offset: int in inner:
				sum += absf(values[base + offset])
		"ReduceL2", "ReduceSumSquare":
			for offset: int in inner:
				sum += values[base + offset] * values[base + offset]
		"ReduceLogSumExp":
			sum = _log_sum(values, base, inner)
	match node.op:
		"ReduceMean":
			sum /= inner.size()
		"ReduceL2":
			sum = sqrt(sum)
		"ReduceLogSum":
			sum = log(sum)
	return sum


func _log_sum(values: PackedFloat32Array, base: int, inner: PackedInt64Array) -> float:
	var largest: float = -INF
	for offset: int in inner:
		largest = maxf(largest, values[base + offset])
	if is_inf(largest):
		return largest
	var sum: float = 0.0
	for offset: int in inner:
		sum += exp(values[base + offset] - largest)
	return largest + log(sum)


func _of_ints(
	tensor: RLRuntime.OnnxTensor, outer: PackedInt64Array, inner: PackedInt64Array
) -> PackedInt64Array:
	var values: PackedInt64Array = tensor.ints
	var made: PackedInt64Array = []
	if inner.is_empty() or tensor.type == RLRuntime.OnnxTensor.Type.BOOL:
		fail("it cannot work on %s" % tensor.describe())
		return made
	for base: int in outer:
		var sum: int = values[base + inner[0]]
		for index: int in range(1, inner.size()):
			var value: int = values[base + inner[index]]
			match node.op:
				"ReduceSum", "ReduceMean":
					sum += value
				"ReduceMax":
					sum = maxi(sum, value)
				"ReduceMin":
					sum = mini(sum, value)
				"ReduceProd":
					sum *= value
				_:
					fail("it cannot work on %s" % tensor.describe())
					return made
		made.append(sum / inner.size() if node.op == "ReduceMean" else sum)
	return made


func _arguments(
	tensor: RLRuntime.OnnxTensor, outer: PackedInt64Array, inner: PackedInt64Array
) -> PackedInt64Array:
	var values: PackedFloat32Array = tensor.as_floats()
	var sign: float = 1.0 if node.op == "ArgMax" else -1.0
	var made: PackedInt64Array = []
	for base: int in outer:
		var best: int = 0
		for index: int in range(1, inner.size()):
			var gain: float = sign * (values[base + inner[index]] - values[base + inner[best]])
			if gain > 0.0 or (_takes_last and gain == 0.0):
				best = index
		made.append(best)
	return made
