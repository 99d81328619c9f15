extends RLRuntime.OnnxStep
## Conv and ConvInteger: every position's window is a row of one large product.

var _window: RLRuntime.OnnxWindow
var _groups: int = 1
var _kernel: PackedInt64Array = []
var _dense: Array[RLRuntime.OnnxDense] = []
var _turned: PackedInt64Array = []
var _turned_for: Vector2i = Vector2i(-1, -1)


func prepare() -> void:
	_window = RLRuntime.OnnxWindow.new(node)
	_kernel = _window.kernel
	_groups = node.whole("group", 1)


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if node.op == "ConvInteger":
		return _of_ints(given)
	if not has_inputs(given, 2, 3) or not is_floating(given[0]) or not is_floating(given[1]):
		return []
	if given[0].rank() < 3 or given[0].rank() != given[1].rank():
		return fail("%s does not go with %s" % [given[0].describe(), given[1].describe()])
	var bias: RLRuntime.OnnxTensor = optional(given, 2)
	if bias and (bias.rank() != 1 or bias.count() != given[1].dims[0] or not bias.is_float()):
		return fail("%s does not go with %s" % [bias.describe(), given[1].describe()])
	var is_kept: bool = known[1] != null and (not bias or known[2] != null)
	return _convolved(given[0], given[1], bias, is_kept)


func _of_ints(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 2, 4) or given[0].is_float() or given[1].is_float():
		return fail("its inputs are no whole numbers")
	if given[0].rank() < 3 or given[0].rank() != given[1].rank() or not may_make(given[0].dims):
		return fail("%s does not go with %s" % [given[0].describe(), given[1].describe()])
	var image: RLRuntime.OnnxTensor = RLRuntime.OnnxQuantize.centred(
		self, given[0], optional(given, 2), 0
	)
	var weights: RLRuntime.OnnxTensor = RLRuntime.OnnxQuantize.centred(
		self, given[1], optional(given, 3), 0
	)
	if error:
		return []
	var made: Array[RLRuntime.OnnxTensor] = _convolved(image, weights, null, false)
	if error:
		return []
	return [RLRuntime.OnnxCast.cast(made[0], RLRuntime.OnnxTensor.Type.INT32)]


func _convolved(
	image: RLRuntime.OnnxTensor,
	weights: RLRuntime.OnnxTensor,
	bias: RLRuntime.OnnxTensor,
	is_kept: bool
) -> Array[RLRuntime.OnnxTensor]:
	var sizes: PackedInt64Array = image.dims.slice(2)
	_window.kernel = _kernel if _kernel else weights.dims.slice(2)
	var channels: int = weights.dims[1]
	var made: int = weights.dims[0]
	if _window.kernel != weights.dims.slice(2) or _groups < 1 or made % _groups != 0:
		return fail("%s with %d groups" % [weights.describe(), _groups])
	if image.dims[1] != channels * _groups:
		return fail("%s does not go with %s" % [image.describe(), weights.describe()])
	var problem: String = _window.fit(sizes)
	if problem:
		return fail(problem)
	var shape: PackedInt64Array = [image.dims[0], made]
	shape.append_array(_window.positions)
	var depth: int = RLRuntime.OnnxShape.count(weights.dims.slice(1))
	if not may_make(shape, 1 + depth / 16) or not _may_work(channels, sizes):
		return []
	if _dense.is_empty() or not is_kept:
		_pack(weights, bias, depth)
	if error:
		return []
	var places: PackedInt64Array = _window.places(channels, sizes)
	var area: int = RLRuntime.OnnxShape.count(sizes) * channels
	var count: int = RLRuntime.OnnxShape.count(_window.positions)
	var numbers: PackedFloat32Array = []
	for piece: int in image.dims[0] * _groups:
		var part: PackedFloat32Array = image.floats.slice(piece * area, (piece + 1) * area)
		part.append(0.0)
		var rows: PackedFloat32Array = RLRuntime.OnnxTensor.take_floats(part, places)
		var product: PackedFloat32Array = _dense[piece % _groups].multiply(rows, count)
		numbers.append_array(
			RLRuntime.OnnxTensor.take_floats(product, _turning(count, made / _groups))
		)
	return [RLRuntime.OnnxTensor.of_floats(numbers, shape)]


func _may_work(channels: int, sizes: PackedInt64Array) -> bool:
	var work: int = _window.work(channels, sizes)
	if work > RLRuntime.OnnxBudget.LARGEST_TENSOR or not budget.spend(work):
		fail("it needs more work than is allowed")
	return error.is_empty()


func _pack(weights: RLRuntime.OnnxTensor, bias: RLRuntime.OnnxTensor, depth: int) -> void:
	var width: int = weights.dims[0] / _groups
	_dense = []
	if not budget.spend(weights.count()):
		fail("it needs more work than is allowed")
		return
	for group: int in _groups:
		var from: int = group * width
		var part: PackedFloat32Array = weights.floats.slice(from * depth, (from + width) * depth)
		var added: PackedFloat32Array = []
		if bias:
			added = bias.floats.slice(from, from + width)
		_dense.append(RLRuntime.OnnxDense.new(part, depth, width, true, added))


## Places that turn positions × channels into channels × positions.
func _turning(rows: int, columns: int) -> PackedInt64Array:
	if _turned_for != Vector2i(rows, columns):
		_turned_for = Vector2i(rows, columns)
		var lists: Array[PackedInt64Array] = [
			RLRuntime.OnnxShape.multiples(columns, 1), RLRuntime.OnnxShape.multiples(rows, columns)
		]
		_turned = RLRuntime.OnnxShape.places(lists)
	return _turned
