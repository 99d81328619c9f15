@tool
extends RefCounted
## Arithmetic of shapes: counts, strides, broadcasting, and the places of elements.


static func count(dims: PackedInt64Array) -> int:
	var product: int = 1
	for size: int in dims:
		product *= size
	return product


## Whether a tensor of this shape may be made: no negative size, not too many of anything.
static func is_allowed(dims: PackedInt64Array) -> bool:
	if dims.size() > RLRuntime.OnnxBudget.LARGEST_RANK:
		return false
	var product: int = 1
	for size: int in dims:
		if size < 0 or size > RLRuntime.OnnxBudget.LARGEST_TENSOR:
			return false
		product *= maxi(size, 1)
		if product > RLRuntime.OnnxBudget.LARGEST_TENSOR:
			return false
	return true


static func text(dims: PackedInt64Array) -> String:
	var parts: PackedStringArray = []
	for size: int in dims:
		parts.append(str(size) if size >= 0 else "?")
	return "×".join(parts) if parts else "scalar"


static func strides(dims: PackedInt64Array) -> PackedInt64Array:
	var steps: PackedInt64Array = []
	steps.resize(dims.size())
	var step: int = 1
	for axis: int in range(dims.size() - 1, -1, -1):
		steps[axis] = step
		step *= dims[axis]
	return steps


## An axis counted from the front; -1 if there is none of that number.
static func axis_of(axis: int, rank: int) -> int:
	var found: int = axis + rank if axis < 0 else axis
	return found if found >= 0 and found < rank else -1


static func multiples(size: int, step: int, start: int = 0) -> PackedInt64Array:
	var values: PackedInt64Array = []
	values.resize(size)
	for index: int in size:
		values[index] = start + index * step
	return values


## All sums of one number from each list, the last list turning fastest.
##
## With lists of offsets along the axes of a tensor these are the places of its elements, in
## whatever order, selection or repetition the lists say.
static func places(lists: Array[PackedInt64Array]) -> PackedInt64Array:
	var found: PackedInt64Array = [0]
	for list: PackedInt64Array in lists:
		if list.size() == 1 and list[0] == 0:
			continue
		var longer: PackedInt64Array = []
		longer.resize(found.size() * list.size())
		var at: int = 0
		for base: int in found:
			for offset: int in list:
				longer[at] = base + offset
				at += 1
		found = longer
	return found


## The shape two shapes make together; [-1] if they do not fit.
static func broadcast(left: PackedInt64Array, right: PackedInt64Array) -> PackedInt64Array:
	if left == right:
		return left
	var rank: int = maxi(left.size(), right.size())
	var shape: PackedInt64Array = []
	shape.resize(rank)
	for axis: int in rank:
		var first: int = _size_from_end(left, rank - axis)
		var second: int = _size_from_end(right, rank - axis)
		if first != second and first != 1 and second != 1:
			return [-1]
		shape[axis] = second if first == 1 else first
	return shape


## The tensor repeated to fill a shape it broadcasts to.
static func spread(tensor: RLRuntime.OnnxTensor, shape: PackedInt64Array) -> RLRuntime.OnnxTensor:
	if tensor.dims == shape:
		return tensor
	var size: int = count(shape)
	if tensor.count() == size:
		return tensor.reshaped(shape)
	if tensor.count() == 1:
		return _filled(tensor, shape, size)
	if _is_tail(tensor.dims, shape):
		return _repeated(tensor, shape, size)
	var steps: PackedInt64Array = strides(tensor.dims)
	var lists: Array[PackedInt64Array] = []
	var missing: int = shape.size() - tensor.rank()
	for axis: int in shape.size():
		var own: int = axis - missing
		var step: int = steps[own] if own >= 0 and tensor.dims[own] != 1 else 0
		lists.append(multiples(shape[axis], step))
	return tensor.taken(places(lists), shape)


static func _size_from_end(dims: PackedInt64Array, place: int) -> int:
	return dims[dims.size() - place] if place <= dims.size() else 1


static func _is_tail(dims: PackedInt64Array, shape: PackedInt64Array) -> bool:
	var tail: PackedInt64Array = dims
	while tail and tail[0] == 1:
		tail = tail.slice(1)
	return shape.slice(shape.size() - tail.size()) == tail


static func _filled(
	tensor: RLRuntime.OnnxTensor, shape: PackedInt64Array, size: int
) -> RLRuntime.OnnxTensor:
	var filled: RLRuntime.OnnxTensor = tensor.reshaped(shape)
	if tensor.is_float():
		filled.floats = []
		filled.floats.resize(size)
		filled.floats.fill(tensor.floats[0])
	else:
		filled.ints = []
		filled.ints.resize(size)
		filled.ints.fill(tensor.ints[0])
	return filled


static func _repeated(
	tensor: RLRuntime.OnnxTensor, shape: PackedInt64Array, size: int
) -> RLRuntime.OnnxTensor:
	var repeated: RLRuntime.OnnxTensor = tensor.reshaped(shape)
	if tensor.count() == 0:
		return repeated
	if tensor.is_float():
		repeated.floats = tensor.floats.duplicate()
		while repeated.floats.size() < size:
			var missing: int = size - repeated.floats.size()
			repeated.floats.append_array(repeated.floats.slice(0, missing))
	else:
		repeated.ints = tensor.ints.duplicate()
		while repeated.ints.size() < size:
			repeated.ints.append_array(repeated.ints.slice(0, size - repeated.ints.size()))
	return repeated
