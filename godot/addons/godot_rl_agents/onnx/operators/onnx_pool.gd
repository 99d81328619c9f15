extends RLRuntime.OnnxStep
## MaxPool and AveragePool, and the same over whole images.

## Whether it takes and makes images as vectors of channels.
var has_lanes: bool = false

var _window: RLRuntime.OnnxWindow
var _counts_padding: bool = false


func prepare() -> void:
	if node.op.begins_with("Global"):
		return
	_window = RLRuntime.OnnxWindow.new(node)
	if node.op == "MaxPool":
		node.ignore(["storage_order"])
		if node.outputs.size() > 1:
			fail("its indices cannot be made")
	else:
		_counts_padding = node.whole("count_include_pad") != 0


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, 1) or not is_floating(given[0]):
		return []
	var image: RLRuntime.OnnxTensor = given[0]
	if image.rank() < 3:
		return fail("it cannot work on %s" % image.describe())
	var sizes: PackedInt64Array = image.dims.slice(2)
	if not _window:
		return _whole(image, sizes)
	var problem: String = _window.fit(sizes)
	if problem:
		return fail(problem)
	return _largest_lanes(image, sizes) if image.lanes else _pooled(image, sizes)


## Whether it may take and make images as vectors of channels.
func can_have_lanes() -> bool:
	return node.op == "MaxPool" and _window.is_plain()


func _largest_lanes(
	image: RLRuntime.OnnxTensor, sizes: PackedInt64Array
) -> Array[RLRuntime.OnnxTensor]:
	var shape: PackedInt64Array = image.dims.slice(0, 2)
	shape.append_array(_window.positions)
	if not may_make(shape, RLRuntime.OnnxShape.count(_window.kernel)):
		return []
	var blocks: int = (image.dims[1] + 3) >> 2
	var made: PackedVector4Array = []
	made.resize(image.dims[0] * blocks * RLRuntime.OnnxShape.count(_window.positions))
	var stride: Vector2i = _window.strides()
	var pads: PackedInt64Array = _window.pads()
	var at: int = 0
	for piece: int in image.dims[0]:
		for y: int in _window.positions[0]:
			var top: int = y * stride.x - pads[0]
			var lines: Array = range(maxi(top, 0), mini(top + _window.kernel[0], sizes[0]))
			for x: int in _window.positions[1]:
				var left: int = x * stride.y - pads[1]
				var from: int = maxi(left, 0)
				var to: int = mini(left + _window.kernel[1], sizes[1])
				for block: int in blocks:
					var largest: Vector4 = Vector4(-INF, -INF, -INF, -INF)
					for line: int in lines:
						var start: int = ((piece * sizes[0] + line) * sizes[1]) * blocks + block
						for column: int in range(from, to):
							largest = largest.max(image.lanes[start + column * blocks])
					made[at] = largest
					at += 1
	return [RLRuntime.OnnxTensor.of_lanes(made, shape)]


func _pooled(image: RLRuntime.OnnxTensor, sizes: PackedInt64Array) -> Array[RLRuntime.OnnxTensor]:
	var shape: PackedInt64Array = image.dims.slice(0, 2)
	shape.append_array(_window.positions)
	var work: int = _window.work(1, sizes)
	if work > RLRuntime.OnnxBudget.LARGEST_TENSOR or not budget.spend(work):
		return fail("it needs more work than is allowed")
	if not may_make(shape, RLRuntime.OnnxShape.count(_window.kernel)):
		return []
	var made: PackedFloat32Array = []
	var places: PackedInt64Array = _window.places(1, sizes)
	var counts: PackedInt64Array = []
	if _counts_padding:
		counts = _counts(sizes)
	var area: int = RLRuntime.OnnxShape.count(sizes)
	for channel: int in image.dims[0] * image.dims[1]:
		var part: PackedFloat32Array = image.floats.slice(channel * area, (channel + 1) * area)
		if node.op == "MaxPool":
			_add_largest(made, part, places)
		else:
			_add_means(made, part, places, counts)
	return [RLRuntime.OnnxTensor.of_floats(made, shape)]


func _add_largest(
	made: PackedFloat32Array, values: PackedFloat32Array, places: PackedInt64Array
) -> void:
	var size: int = RLRuntime.OnnxShape.count(_window.kernel)
	values.append(-INF)
	for start: int in range(0, places.size(), size):
		var largest: float = -INF
		for at: int in range(start, start + size):
			largest = maxf(largest, values[places[at]])
		made.append(largest)


func _add_means(
	made: PackedFloat32Array,
	values: PackedFloat32Array,
	places: PackedInt64Array,
	counts: PackedInt64Array
) -> void:
	var size: int = RLRuntime.OnnxShape.count(_window.kernel)
	var outside: int = values.size()
	values.append(0.0)
	for index: int in places.size() / size:
		var sum: float = 0.0
		var inside: int = 0
		for at: int in range(index * size, (index + 1) * size):
			sum += values[places[at]]
			inside += 1 if places[at] < outside else 0
		made.append(sum / (counts[index] if _counts_padding else maxi(inside, 1)))


## How many places count at each position, where padding counts.
func _counts(sizes: PackedInt64Array) -> PackedInt64Array:
	var counts: PackedInt64Array = []
	var strides: PackedInt64Array = RLRuntime.OnnxShape.strides(_window.positions)
	for index: int in RLRuntime.OnnxShape.count(_window.positions):
		var position: PackedInt64Array = []
		for axis: int in sizes.size():
			position.append(index / strides[axis] % _window.positions[axis])
		counts.append(maxi(_window.counted(position, sizes), 1))
	return counts


func _whole(image: RLRuntime.OnnxTensor, sizes: PackedInt64Array) -> Array[RLRuntime.OnnxTensor]:
	var area: int = RLRuntime.OnnxShape.count(sizes)
	var shape: PackedInt64Array = image.dims.duplicate()
	for axis: int in range(2, shape.size()):
		shape[axis] = 1
	if not may_make(image.dims):
		return []
	var made: PackedFloat32Array = []
	for channel: int in image.dims[0] * image.dims[1]:
		var sum: float = 0.0
		var largest: float = -INF
		for index: int in range(channel * area, (channel + 1) * area):
			sum += image.floats[index]
			largest = maxf(largest, image.floats[index])
		made.append(sum / area if node.op == "GlobalAveragePool" else largest)
	return [RLRuntime.OnnxTensor.of_floats(made, shape)]
