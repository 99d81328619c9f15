extends RLRuntime.OnnxStep
## Operators on several pieces: Concat, Split, Where.

var _axis: int = 0
var _sizes: PackedInt64Array = []


func prepare() -> void:
	match node.op:
		"Concat":
			if not node.has("axis"):
				fail("it names no axis")
			_axis = node.whole("axis")
		"Split":
			_axis = node.whole("axis")
			node.ignore(["num_outputs"])
			if opset < 13:
				_sizes = node.wholes("split")


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, RLRuntime.OnnxBudget.LARGEST_GRAPH):
		return []
	match node.op:
		"Concat":
			return _concat(given)
		"Split":
			return _split(given)
	return _where(given)


func _concat(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	var shape: PackedInt64Array = given[0].dims.duplicate()
	var axis: int = axis_in(_axis, shape.size())
	if error:
		return []
	shape[axis] = 0
	for tensor: RLRuntime.OnnxTensor in given:
		if not tensor or tensor.rank() != shape.size() or tensor.type != given[0].type:
			return fail("%s does not go with the others" % (tensor.describe() if tensor else "?"))
		var length: int = shape[axis] + tensor.dims[axis]
		shape[axis] = tensor.dims[axis]
		if tensor.dims != shape:
			return fail("%s does not go with the others" % tensor.describe())
		shape[axis] = length
	if not may_make(shape):
		return []
	var made: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.new()
	made.type = given[0].type
	made.dims = shape
	for row: int in RLRuntime.OnnxShape.count(shape.slice(0, axis)):
		for tensor: RLRuntime.OnnxTensor in given:
			var width: int = RLRuntime.OnnxShape.count(tensor.dims.slice(axis))
			if made.is_float():
				made.floats.append_array(tensor.floats.slice(row * width, (row + 1) * width))
			else:
				made.ints.append_array(tensor.ints.slice(row * width, (row + 1) * width))
	return [made]


func _split(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	var tensor: RLRuntime.OnnxTensor = given[0]
	var axis: int = axis_in(_axis, tensor.rank())
	if error:
		return []
	var parts: int = maxi(node.outputs.size(), 1)
	var sizes: PackedInt64Array = list_of(given, 1, _sizes).duplicate()
	if sizes.is_empty():
		var each: int = (tensor.dims[axis] + parts - 1) / parts
		for part: int in parts:
			sizes.append(clampi(tensor.dims[axis] - part * each, 0, each))
	var sum: int = 0
	for size: int in sizes:
		sum += size
		if size < 0 or size > tensor.dims[axis]:
			return fail("a piece of %d from %s" % [size, tensor.describe()])
	if sum != tensor.dims[axis] or sizes.size() != parts or not may_make(tensor.dims):
		return fail("%s in pieces of %s" % [tensor.describe(), sizes])
	return _pieces(tensor, axis, sizes)


func _pieces(
	tensor: RLRuntime.OnnxTensor, axis: int, sizes: PackedInt64Array
) -> Array[RLRuntime.OnnxTensor]:
	var rows: int = RLRuntime.OnnxShape.count(tensor.dims.slice(0, axis))
	var inner: int = RLRuntime.OnnxShape.count(tensor.dims.slice(axis + 1))
	var width: int = inner * tensor.dims[axis]
	var from: int = 0
	var made: Array[RLRuntime.OnnxTensor] = []
	for size: int in sizes:
		var piece: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.new()
		piece.type = tensor.type
		piece.dims = tensor.dims.duplicate()
		piece.dims[axis] = size
		for row: int in rows:
			var start: int = row * width + from
			if tensor.is_float():
				piece.floats.append_array(tensor.floats.slice(start, start + size * inner))
			else:
				piece.ints.append_array(tensor.ints.slice(start, start + size * inner))
		from += size * inner
		made.append(piece)
	return made


func _where(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 3, 3):
		return []
	if given[0].is_float() or given[1].type != given[2].type:
		return fail("%s does not go with %s" % [given[1].describe(), given[2].describe()])
	var shape: PackedInt64Array = RLRuntime.OnnxShape.broadcast(given[1].dims, given[2].dims)
	if not shape.has(-1):
		shape = RLRuntime.OnnxShape.broadcast(shape, given[0].dims)
	if shape.has(-1):
		return fail("%s does not go with %s" % [given[1].describe(), given[2].describe()])
	if not may_make(shape):
		return []
	var chosen: PackedInt64Array = RLRuntime.OnnxShape.spread(given[0], shape).ints
	var first: RLRuntime.OnnxTensor = RLRuntime.OnnxShape.spread(given[1], shape)
	var second: RLRuntime.OnnxTensor = RLRuntime.OnnxShape.spread(given[2], shape)
	var made: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.zeros(shape, first.type)
	for index: int in chosen.size():
		if made.is_float():
			made.floats[index] = first.floats[index] if chosen[index] else second.floats[index]
		else:
			made.ints[index] = first.ints[index] if chosen[index] else second.ints[index]
	return [made]
