extends RLRuntime.OnnxStep
## Operators that look up or replace single elements: GatherElements, GatherND, ScatterElements,
## ScatterND, and CumSum, Trilu, TopK.

var _axis: int = 0
var _is_upper: bool = true
var _is_exclusive: bool = false
var _is_reverse: bool = false
var _takes_largest: bool = true


func prepare() -> void:
	match node.op:
		"GatherElements", "ScatterElements":
			_axis = node.whole("axis", 0)
		"GatherND":
			if node.whole("batch_dims") != 0:
				fail("its batch_dims cannot be run")
		"CumSum":
			_is_exclusive = node.whole("exclusive") != 0
			_is_reverse = node.whole("reverse") != 0
		"Trilu":
			_is_upper = node.whole("upper", 1) != 0
		"TopK":
			_axis = node.whole("axis", -1)
			_takes_largest = node.whole("largest", 1) != 0
			node.ignore(["sorted"])
	if node.op.begins_with("Scatter") and node.text("reduction", "none") != "none":
		fail("its reduction cannot be run")


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, 3) or not may_make(given[0].dims, 2):
		return []
	match node.op:
		"CumSum":
			return _cumulated(given)
		"Trilu":
			return _triangle(given)
		"TopK":
			return _top(given)
	if not has_inputs(given, 3 if node.op.begins_with("Scatter") else 2, 3) or given[1].is_float():
		return fail("its indices are no whole numbers")
	return _elements(given) if node.op.ends_with("Elements") else _blocks(given)


func _elements(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	var tensor: RLRuntime.OnnxTensor = given[0]
	var wanted: RLRuntime.OnnxTensor = given[1]
	var axis: int = axis_in(_axis, tensor.rank())
	if error or wanted.rank() != tensor.rank() or not may_make(wanted.dims, 2):
		return fail("%s does not go with %s" % [wanted.describe(), tensor.describe()])
	var strides: PackedInt64Array = RLRuntime.OnnxShape.strides(tensor.dims)
	var lists: Array[PackedInt64Array] = []
	for place: int in tensor.rank():
		if place != axis and wanted.dims[place] > tensor.dims[place]:
			return fail("%s does not go with %s" % [wanted.describe(), tensor.describe()])
		var step: int = strides[place] if place != axis else 0
		lists.append(RLRuntime.OnnxShape.multiples(wanted.dims[place], step))
	var places: PackedInt64Array = RLRuntime.OnnxShape.places(lists)
	for index: int in places.size():
		places[index] += _checked(wanted.ints[index], tensor.dims[axis]) * strides[axis]
	if error:
		return []
	if node.op == "GatherElements":
		return [tensor.taken(places, wanted.dims)]
	if given[2].dims != wanted.dims:
		return fail("%s does not go with %s" % [given[2].describe(), wanted.describe()])
	return _replaced(tensor, places, given[2])


## Each row of the indices names a block by its first axes.
func _blocks(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	var tensor: RLRuntime.OnnxTensor = given[0]
	var wanted: RLRuntime.OnnxTensor = given[1]
	var depth: int = wanted.dims[-1] if wanted.rank() > 0 else 0
	if depth < 1 or depth > tensor.rank():
		return fail("%s does not go with %s" % [wanted.describe(), tensor.describe()])
	var shape: PackedInt64Array = wanted.dims.slice(0, wanted.rank() - 1)
	shape.append_array(tensor.dims.slice(depth))
	if not may_make(shape, 2):
		return []
	var strides: PackedInt64Array = RLRuntime.OnnxShape.strides(tensor.dims)
	var starts: PackedInt64Array = []
	for row: int in wanted.count() / depth:
		var start: int = 0
		for axis: int in depth:
			start += _checked(wanted.ints[row * depth + axis], tensor.dims[axis]) * strides[axis]
		starts.append(start)
	if error:
		return []
	var block: PackedInt64Array = RLRuntime.OnnxShape.multiples(
		RLRuntime.OnnxShape.count(tensor.dims.slice(depth)), 1
	)
	var lists: Array[PackedInt64Array] = [starts, block]
	if node.op == "GatherND":
		return [tensor.taken(RLRuntime.OnnxShape.places(lists), shape)]
	if given[2].dims != shape:
		return fail(
			"%s does not go with %s" % [given[2].describe(), RLRuntime.OnnxShape.text(shape)]
		)
	return _replaced(tensor, RLRuntime.OnnxShape.places(lists), given[2])


func _checked(index: int, size: int) -> int:
	var place: int = index + size if index < 0 else index
	if place < 0 or place >= size:
		fail("index %d on an axis of %d" % [index, size])
		return 0
	return place


func _replaced(
	tensor: RLRuntime.OnnxTensor, places: PackedInt64Array, updates: RLRuntime.OnnxTensor
) -> Array[RLRuntime.OnnxTensor]:
	if updates.type != tensor.type:
		return fail("%s does not go with %s" % [updates.describe(), tensor.describe()])
	var made: RLRuntime.OnnxTensor = tensor.reshaped(tensor.dims)
	made.floats = tensor.floats.duplicate()
	made.ints = tensor.ints.duplicate()
	for index: int in places.size():
		if tensor.is_float():
			made.floats[places[index]] = updates.floats[index]
		else:
			made.ints[places[index]] = updates.ints[index]
	return [made]


func _cumulated(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	var tensor: RLRuntime.OnnxTensor = given[0]
	if not has_inputs(given, 2, 2) or given[1].is_float() or given[1].count() != 1:
		return fail("its axis is no whole number")
	var axis: int = axis_in(given[1].ints[0], tensor.rank())
	if error:
		return []
	var size: int = tensor.dims[axis]
	var step: int = RLRuntime.OnnxShape.count(tensor.dims.slice(axis + 1))
	var made: RLRuntime.OnnxTensor = tensor.reshaped(tensor.dims)
	made.floats = tensor.floats.duplicate()
	made.ints = tensor.ints.duplicate()
	for line: int in tensor.count() / maxi(size, 1):
		var start: int = line / step * step * size + line % step
		var real: float = 0.0
		var whole: int = 0
		for turn: int in size:
			var place: int = start + step * (size - 1 - turn if _is_reverse else turn)
			if tensor.is_float():
				made.floats[place] = real if _is_exclusive else real + tensor.floats[place]
				real += tensor.floats[place]
			else:
				made.ints[place] = whole if _is_exclusive else whole + tensor.ints[place]
				whole += tensor.ints[place]
	return [made]


func _triangle(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	var tensor: RLRuntime.OnnxTensor = given[0]
	var shift: int = 0
	if optional(given, 1) and given[1].count() == 1 and not given[1].is_float():
		shift = given[1].ints[0]
	if tensor.rank() < 2:
		return fail("it cannot work on %s" % tensor.describe())
	var height: int = tensor.dims[-2]
	var width: int = tensor.dims[-1]
	var places: PackedInt64Array = RLRuntime.OnnxShape.multiples(tensor.count(), 1)
	for index: int in places.size():
		var beyond: int = index % width - index / width % height - shift
		if beyond < 0 if _is_upper else beyond > 0:
			places[index] = -1
	return [tensor.taken(places, tensor.dims)]


func _top(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	var tensor: RLRuntime.OnnxTensor = given[0]
	if not has_inputs(given, 2, 2) or given[1].is_float() or given[1].count() != 1:
		return fail("its number is no whole number")
	var axis: int = axis_in(_axis, tensor.rank())
	var wanted: int = given[1].ints[0]
	if error or wanted < 0 or wanted > tensor.dims[axis]:
		return fail("%d of %s" % [wanted, tensor.describe()])
	var shape: PackedInt64Array = tensor.dims.duplicate()
	shape[axis] = wanted
	if not may_make(tensor.dims, 8):
		return []
	var size: int = tensor.dims[axis]
	var step: int = RLRuntime.OnnxShape.count(tensor.dims.slice(axis + 1))
	var numbers: PackedFloat32Array = tensor.as_floats()
	var places: PackedInt64Array = []
	places.resize(RLRuntime.OnnxShape.count(shape))
	var order: PackedInt64Array = places.duplicate()
	for line: int in RLRuntime.OnnxShape.count(shape) / maxi(wanted, 1):
		var start: int = line / step * step * size + line % step
		var to: int = line / step * step * wanted + line % step
		var best: Array[Vector2] = []
		for index: int in size:
			var value: float = numbers[start + index * step]
			best.append(Vector2(-value if _takes_largest else value, index))
		best.sort()
		for index: int in wanted:
			order[to + index * step] = int(best[index].y)
			places[to + index * step] = start + int(best[index].y) * step
	return [tensor.taken(places, shape), RLRuntime.OnnxTensor.of_ints(order, shape)]
