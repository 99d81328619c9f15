extends RLRuntime.OnnxStep
## Operators that pick elements along axes: Expand, Gather, Pad, Slice, Tile, Transpose.
##
## Each is a list of offsets for every axis; the places of the elements are their sums. Those of the
## shape that came last are kept, since it mostly comes again.

## So negative that no sum with offsets is a place: there a filling stands.
const NOWHERE: int = -(1 << 60)

var _permutation: PackedInt64Array = []
var _axis: int = 0
var _starts: PackedInt64Array = []
var _ends: PackedInt64Array = []
var _axes: PackedInt64Array = []
var _pads: PackedInt64Array = []
var _mode: String = "constant"
var _fill: float = 0.0
var _kept: RLRuntime.OnnxTensor
var _kept_for: Array = []


func prepare() -> void:
	match node.op:
		"Transpose":
			_permutation = node.wholes("perm")
		"Gather":
			_axis = node.whole("axis", 0)
		"Slice":
			if opset < 10:
				_starts = node.wholes("starts")
				_ends = node.wholes("ends")
				_axes = node.wholes("axes")
		"Pad":
			_mode = node.text("mode", "constant")
			if opset < 11:
				_pads = node.wholes("pads")
				_fill = node.real("value")
			if _mode not in ["constant", "reflect", "edge"]:
				fail("its mode '%s' cannot be run" % _mode)


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, 5):
		return []
	var tensor: RLRuntime.OnnxTensor = given[0]
	var key: Array = [tensor.dims]
	for index: int in range(1, given.size()):
		key.append(given[index].ints if given[index] else null)
		key.append(given[index].dims if given[index] else null)
	if not _kept or key != _kept_for:
		_kept = _places(tensor, given)
		_kept_for = key
		if error:
			_kept = null
			return []
	elif not may_make(_kept.dims):
		return []
	if node.op == "Pad" and opset >= 11 and optional(given, 2):
		if given[2].count() != 1:
			return fail("its filling is %s" % given[2].describe())
		_fill = given[2].as_floats()[0]
	return [tensor.taken(_kept.ints, _kept.dims, _fill)]


## Where the elements of the result are in the tensor.
func _places(
	tensor: RLRuntime.OnnxTensor, given: Array[RLRuntime.OnnxTensor]
) -> RLRuntime.OnnxTensor:
	var lists: Array[PackedInt64Array] = []
	var shape: PackedInt64Array = []
	match node.op:
		"Transpose":
			lists = _transposed(tensor)
		"Gather":
			return _gathered(tensor, given)
		"Slice":
			lists = _sliced(tensor, given)
		"Pad":
			lists = _padded(tensor, given)
		"Tile":
			lists = _tiled(tensor, given)
		"Expand":
			return _expanded(tensor, given)
	for list: PackedInt64Array in lists:
		shape.append(list.size())
	if error or not may_make(shape, 2):
		return null
	return RLRuntime.OnnxTensor.of_ints(RLRuntime.OnnxShape.places(lists), shape)


func _transposed(tensor: RLRuntime.OnnxTensor) -> Array[PackedInt64Array]:
	var order: PackedInt64Array = _permutation
	if not node.has("perm"):
		order = RLRuntime.OnnxShape.multiples(tensor.rank(), -1, tensor.rank() - 1)
	var sorted: PackedInt64Array = order.duplicate()
	sorted.sort()
	if sorted != RLRuntime.OnnxShape.multiples(tensor.rank(), 1):
		fail("%s in the order %s" % [tensor.describe(), order])
		return []
	var strides: PackedInt64Array = RLRuntime.OnnxShape.strides(tensor.dims)
	var lists: Array[PackedInt64Array] = []
	for axis: int in order:
		lists.append(RLRuntime.OnnxShape.multiples(tensor.dims[axis], strides[axis]))
	return lists


## The offsets of all elements, axis by axis.
func _everything(tensor: RLRuntime.OnnxTensor) -> Array[PackedInt64Array]:
	var strides: PackedInt64Array = RLRuntime.OnnxShape.strides(tensor.dims)
	var lists: Array[PackedInt64Array] = []
	for axis: int in tensor.rank():
		lists.append(RLRuntime.OnnxShape.multiples(tensor.dims[axis], strides[axis]))
	return lists


func _gathered(
	tensor: RLRuntime.OnnxTensor, given: Array[RLRuntime.OnnxTensor]
) -> RLRuntime.OnnxTensor:
	if not has_inputs(given, 2, 2) or given[1].is_float():
		fail("its indices are no whole numbers")
		return null
	var axis: int = axis_in(_axis, tensor.rank())
	if error:
		return null
	var lists: Array[PackedInt64Array] = _everything(tensor)
	var stride: int = RLRuntime.OnnxShape.count(tensor.dims.slice(axis + 1))
	var chosen: PackedInt64Array = given[1].ints.duplicate()
	for index: int in chosen.size():
		var place: int = chosen[index] + (tensor.dims[axis] if chosen[index] < 0 else 0)
		if place < 0 or place >= tensor.dims[axis]:
			fail("index %d on an axis of %d" % [chosen[index], tensor.dims[axis]])
			return null
		chosen[index] = place * stride
	lists[axis] = chosen
	var shape: PackedInt64Array = tensor.dims.slice(0, axis)
	shape.append_array(given[1].dims)
	shape.append_array(tensor.dims.slice(axis + 1))
	return (
		RLRuntime.OnnxTensor.of_ints(RLRuntime.OnnxShape.places(lists), shape)
		if may_make(shape, 2)
		else null
	)


func _sliced(
	tensor: RLRuntime.OnnxTensor, given: Array[RLRuntime.OnnxTensor]
) -> Array[PackedInt64Array]:
	var starts: PackedInt64Array = list_of(given, 1, _starts)
	var ends: PackedInt64Array = list_of(given, 2, _ends)
	var axes: PackedInt64Array = list_of(given, 3, _axes)
	if axes.is_empty():
		axes = RLRuntime.OnnxShape.multiples(starts.size(), 1)
	var steps: PackedInt64Array = list_of(given, 4, [])
	if steps.is_empty():
		steps.resize(starts.size())
		steps.fill(1)
	if starts.size() != ends.size() or axes.size() != ends.size() or steps.size() != ends.size():
		fail("starts, ends, axes and steps are not alike")
		return []
	var lists: Array[PackedInt64Array] = _everything(tensor)
	for index: int in axes.size():
		var axis: int = axis_in(axes[index], tensor.rank())
		if error or steps[index] == 0:
			fail("a step of 0")
			return []
		lists[axis] = _every(lists[axis], starts[index], ends[index], steps[index])
	return lists


## Elements from `start` to before `end` by `step`, ends counted as in Python.
func _every(list: PackedInt64Array, start: int, end: int, step: int) -> PackedInt64Array:
	var size: int = list.size()
	var least: int = 0 if step > 0 else -1
	var from: int = clampi(start + size if start < 0 else start, least, size + least)
	var to: int = clampi(end + size if end < 0 else end, least, size + least)
	step = clampi(step, -size - 1, size + 1)
	var chosen: PackedInt64Array = []
	for index: int in range(from, to, step):
		chosen.append(list[index])
	return chosen


func _padded(
	tensor: RLRuntime.OnnxTensor, given: Array[RLRuntime.OnnxTensor]
) -> Array[PackedInt64Array]:
	var pads: PackedInt64Array = list_of(given, 1, _pads) if opset >= 11 else _pads
	var axes: PackedInt64Array = list_of(given, 3, [])
	if axes.is_empty():
		axes = RLRuntime.OnnxShape.multiples(tensor.rank(), 1)
	if pads.size() != 2 * axes.size():
		fail("%d pads for %d axes" % [pads.size(), axes.size()])
		return []
	var lists: Array[PackedInt64Array] = _everything(tensor)
	for index: int in axes.size():
		var axis: int = axis_in(axes[index], tensor.rank())
		if error:
			return []
		lists[axis] = _wider(lists[axis], pads[index], pads[index + axes.size()])
	return lists


func _wider(list: PackedInt64Array, before: int, after: int) -> PackedInt64Array:
	var size: int = list.size()
	var wide: PackedInt64Array = []
	if (
		maxi(absi(before), absi(after)) > RLRuntime.OnnxBudget.LARGEST_TENSOR
		or not budget.spend(absi(before) + absi(after))
	):
		fail("pads of %d and %d" % [before, after])
		return []
	for place: int in range(-before, size + after):
		if place >= 0 and place < size:
			wide.append(list[place])
		elif _mode == "constant":
			wide.append(NOWHERE)
		elif _mode == "edge" and size > 0:
			wide.append(list[clampi(place, 0, size - 1)])
		elif size > 1:
			var turn: int = posmod(place, 2 * size - 2)
			wide.append(list[turn if turn < size else 2 * size - 2 - turn])
		else:
			fail("nothing to reflect")
			return []
	return wide


func _tiled(
	tensor: RLRuntime.OnnxTensor, given: Array[RLRuntime.OnnxTensor]
) -> Array[PackedInt64Array]:
	var repeats: PackedInt64Array = list_of(given, 1, [])
	if repeats.size() != tensor.rank():
		fail("%d repeats of %s" % [repeats.size(), tensor.describe()])
		return []
	var lists: Array[PackedInt64Array] = _everything(tensor)
	for axis: int in tensor.rank():
		if repeats[axis] < 0 or repeats[axis] > RLRuntime.OnnxBudget.LARGEST_TENSOR:
			fail("%d repeats" % repeats[axis])
			return []
		if not budget.spend(repeats[axis] * maxi(lists[axis].size(), 1)):
			fail("it needs more work than is allowed")
			return []
		var once: PackedInt64Array = lists[axis]
		var often: PackedInt64Array = []
		for _time: int in repeats[axis] if once else 0:
			often.append_array(once)
		lists[axis] = often
	return lists


func _expanded(
	tensor: RLRuntime.OnnxTensor, given: Array[RLRuntime.OnnxTensor]
) -> RLRuntime.OnnxTensor:
	var shape: PackedInt64Array = RLRuntime.OnnxShape.broadcast(tensor.dims, list_of(given, 1, []))
	if shape.has(-1):
		fail("%s does not go with it" % tensor.describe())
	if error or not may_make(shape, 2):
		return null
	var numbers: PackedInt64Array = RLRuntime.OnnxShape.multiples(tensor.count(), 1)
	return RLRuntime.OnnxShape.spread(RLRuntime.OnnxTensor.of_ints(numbers, tensor.dims), shape)
