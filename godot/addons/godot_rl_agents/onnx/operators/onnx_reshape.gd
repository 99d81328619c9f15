extends RLRuntime.OnnxStep
## Operators on shapes alone: Flatten, Reshape, Shape, Size, Squeeze, Unsqueeze.

var _axes: PackedInt64Array = []
var _axis: int = 1
var _allows_zero: bool = false
var _start: int = 0
var _end: int = RLRuntime.OnnxBudget.LARGEST_RANK


func prepare() -> void:
	match node.op:
		"Flatten":
			_axis = node.whole("axis", 1)
		"Reshape":
			_allows_zero = node.whole("allowzero") != 0
		"Shape":
			_start = node.whole("start")
			_end = node.whole("end", RLRuntime.OnnxBudget.LARGEST_RANK)
		"Squeeze", "Unsqueeze":
			if opset < 13:
				_axes = node.wholes("axes")


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, 2):
		return []
	var tensor: RLRuntime.OnnxTensor = given[0]
	match node.op:
		"Shape":
			var rank: int = tensor.rank()
			var from: int = clampi(_start + rank if _start < 0 else _start, 0, rank)
			var to: int = clampi(_end + rank if _end < 0 else _end, from, rank)
			return [RLRuntime.OnnxTensor.of_ints(tensor.dims.slice(from, to), [to - from])]
		"Size":
			return [RLRuntime.OnnxTensor.of_ints([tensor.count()], [])]
	var shape: PackedInt64Array = _shape(tensor, given)
	if error:
		return []
	if (
		not RLRuntime.OnnxShape.is_allowed(shape)
		or RLRuntime.OnnxShape.count(shape) != tensor.count()
	):
		return fail("%s cannot become %s" % [tensor.describe(), RLRuntime.OnnxShape.text(shape)])
	return [tensor.reshaped(shape)]


func _shape(tensor: RLRuntime.OnnxTensor, given: Array[RLRuntime.OnnxTensor]) -> PackedInt64Array:
	match node.op:
		"Flatten":
			return _flat(tensor)
		"Reshape":
			return _reshaped(tensor, list_of(given, 1, []))
		"Squeeze":
			return _squeezed(tensor, list_of(given, 1, _axes))
	return _unsqueezed(tensor, list_of(given, 1, _axes))


func _flat(tensor: RLRuntime.OnnxTensor) -> PackedInt64Array:
	var axis: int = _axis + tensor.rank() if _axis < 0 else _axis
	if axis < 0 or axis > tensor.rank():
		fail("axis %d of %s" % [_axis, tensor.describe()])
		return []
	return [
		RLRuntime.OnnxShape.count(tensor.dims.slice(0, axis)),
		RLRuntime.OnnxShape.count(tensor.dims.slice(axis))
	]


## 0 keeps a size, -1 takes what is left.
func _reshaped(tensor: RLRuntime.OnnxTensor, wanted: PackedInt64Array) -> PackedInt64Array:
	var shape: PackedInt64Array = wanted.duplicate()
	var open: int = -1
	for axis: int in shape.size():
		if shape[axis] == 0 and not _allows_zero and axis < tensor.rank():
			shape[axis] = tensor.dims[axis]
		elif shape[axis] == -1 and open < 0:
			open = axis
			shape[axis] = 1
	if open >= 0 and RLRuntime.OnnxShape.is_allowed(shape):
		var rest: int = RLRuntime.OnnxShape.count(shape)
		shape[open] = tensor.count() / rest if rest > 0 else 0
	return shape


func _squeezed(tensor: RLRuntime.OnnxTensor, axes: PackedInt64Array) -> PackedInt64Array:
	var is_gone: Dictionary[int, bool] = {}
	for axis: int in axes:
		is_gone[axis_in(axis, tensor.rank())] = true
	var shape: PackedInt64Array = []
	for axis: int in tensor.rank():
		if axes and is_gone.has(axis) and tensor.dims[axis] != 1:
			fail("axis %d of %s is not 1" % [axis, tensor.describe()])
		var goes: bool = is_gone.has(axis) if axes else tensor.dims[axis] == 1
		if not goes:
			shape.append(tensor.dims[axis])
	return shape


func _unsqueezed(tensor: RLRuntime.OnnxTensor, axes: PackedInt64Array) -> PackedInt64Array:
	var rank: int = tensor.rank() + axes.size()
	var is_new: Dictionary[int, bool] = {}
	for axis: int in axes:
		is_new[axis_in(axis, rank)] = true
	if is_new.size() != axes.size():
		fail("an axis is named twice")
	if error:
		return []
	var shape: PackedInt64Array = []
	var own: int = 0
	for axis: int in rank:
		if is_new.has(axis):
			shape.append(1)
		else:
			shape.append(tensor.dims[own])
			own += 1
	return shape
