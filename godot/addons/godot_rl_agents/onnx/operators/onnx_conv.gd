extends RLRuntime.OnnxStep
## Conv and ConvInteger.
##
## Images with two axes and constant weights are convolved row by row of the window, as vectors of
## four channels; a scaling or a transposition before, and an activation after, are taken in. For
## anything else, every position's window is a row of one large product.

const CHANNELS_LAST: PackedInt64Array = [0, 3, 1, 2]

## The activation taken in, or "".
var activation: String = ""
## Whether its result is read only by steps that take images as vectors of channels.
var gives_lanes: bool = false

var _window: RLRuntime.OnnxWindow
var _groups: int = 1
var _kernel: PackedInt64Array = []
var _dense: Array[RLRuntime.OnnxDense] = []
var _turned: PackedInt64Array = []
var _turned_for: Vector3i = Vector3i(-1, -1, -1)
## Of the quick way: the weights, what they are multiplied by, and whether channels come last.
var _is_quick: bool = false
var _image_kernel: RLRuntime.OnnxImageKernel
var _factor: float = 1.0
var _takes_last: bool = false
## Places of an image's numbers in vectors of channels, and the sizes that they are for.
var _lanes: PackedInt64Array = []
var _lanes_for: PackedInt64Array = []


func prepare() -> void:
	_window = RLRuntime.OnnxWindow.new(node)
	_kernel = _window.kernel
	_groups = node.whole("group", 1)
	if node.op != "Conv" or known.size() < 2 or not known[1]:
		return
	var has_bias: bool = known.size() > 2 and inputs[2] >= 0
	_is_quick = (
		_groups == 1
		and known[1].rank() == 4
		and known[1].is_float()
		and _window.is_plain()
		and not (has_bias and not known[2])
	)


## Whether it may take and make images as vectors of channels.
func can_have_lanes() -> bool:
	return _is_quick


## Whether it was told that the channels of its image come last.
func takes_last() -> bool:
	return _takes_last


## Take in the operator that follows; false if it cannot be.
func absorb_activation(op: String) -> bool:
	if not _is_quick or activation or op not in RLRuntime.OnnxProduct.ACTIVATIONS:
		return false
	activation = op
	return true


## Take in the operator that makes the image; false if it cannot be.
func absorb_source(source: RLRuntime.OnnxStep) -> bool:
	if not _is_quick or source.outputs.size() != 1:
		return false
	if source.node.op == "Transpose":
		var is_last: bool = source.node.wholes("perm") == CHANNELS_LAST
		if not is_last or _takes_last:
			return false
		_takes_last = true
		return true
	if source.node.op not in ["Div", "Mul"] or source.known.size() != 2 or source.known[0]:
		return false
	var by: RLRuntime.OnnxTensor = source.known[1]
	# more axes would add some to the image
	if not by or not by.is_float() or by.count() != 1 or by.rank() > 1 or by.floats[0] == 0.0:
		return false
	_factor *= by.floats[0] if source.node.op == "Mul" else 1.0 / by.floats[0]
	return true


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
	var dims: PackedInt64Array = image.dims
	if _takes_last:
		dims = [dims[0], dims[3], dims[1], dims[2]]
	var sizes: PackedInt64Array = dims.slice(2)
	_window.kernel = _kernel if _kernel else weights.dims.slice(2)
	var channels: int = weights.dims[1]
	var made: int = weights.dims[0]
	if _window.kernel != weights.dims.slice(2) or _groups < 1 or made % _groups != 0:
		return fail("%s with %d groups" % [weights.describe(), _groups])
	var problem: String = _window.fit(sizes)
	if dims[1] != channels * _groups:
		problem = "%s does not go with %s" % [image.describe(), weights.describe()]
	if problem:
		return fail(problem)
	var shape: PackedInt64Array = [dims[0], made]
	shape.append_array(_window.positions)
	var depth: int = RLRuntime.OnnxShape.count(weights.dims.slice(1))
	if not may_make(shape, 1 + depth / 16) or not _may_work(channels, sizes):
		return []
	if _is_quick:
		return _quick(image, dims, weights, bias, shape)
	if _dense.is_empty() or not is_kept:
		_pack(weights, bias, depth)
	return [] if error else _by_windows(image, channels, shape)


## Every position's window is gathered into a row of one product.
func _by_windows(
	image: RLRuntime.OnnxTensor, channels: int, shape: PackedInt64Array
) -> Array[RLRuntime.OnnxTensor]:
	var sizes: PackedInt64Array = image.dims.slice(2)
	var made: int = shape[1]
	var places: PackedInt64Array = _window.places(channels, sizes)
	var area: int = RLRuntime.OnnxShape.count(sizes) * channels
	var count: int = RLRuntime.OnnxShape.count(_window.positions)
	var width: int = made / _groups
	var numbers: PackedFloat32Array = []
	for piece: int in image.dims[0] * _groups:
		var part: PackedFloat32Array = image.floats.slice(piece * area, (piece + 1) * area)
		part.append(0.0)
		var rows: PackedFloat32Array = RLRuntime.OnnxTensor.take_floats(part, places)
		var product: PackedFloat32Array = _dense[piece % _groups].multiply(rows, count)
		numbers.append_array(
			RLRuntime.OnnxTensor.take_floats(product, _turning(count, width, width))
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


## Row by row of the window; `dims` has the channels first wherever the image has them.
func _quick(
	image: RLRuntime.OnnxTensor,
	dims: PackedInt64Array,
	weights: RLRuntime.OnnxTensor,
	bias: RLRuntime.OnnxTensor,
	shape: PackedInt64Array
) -> Array[RLRuntime.OnnxTensor]:
	if not _image_kernel:
		if not budget.spend(2 * weights.count()):
			return fail("it needs more work than is allowed")
		var added: PackedFloat32Array = bias.floats if bias else PackedFloat32Array()
		_image_kernel = RLRuntime.OnnxImageKernel.new(weights, _factor, added)
	var pads: PackedInt64Array = _window.pads()
	var has_pads: bool = pads.count(0) < pads.size()
	var line: int = (dims[3] + pads[1] + pads[3]) * _image_kernel.blocks
	var area: int = line * (dims[2] + pads[0] + pads[2])
	var positions: Vector2i = Vector2i(_window.positions[0], _window.positions[1])
	var vectors: PackedVector4Array = []
	for piece: int in dims[0]:
		var lanes: PackedVector4Array = image.lanes
		var at: int = piece * area
		if not lanes or has_pads:
			lanes = _padded(image, dims, piece) if lanes else _lanes_of(image, dims, piece)
			at = 0
		var product: PackedVector4Array = _image_kernel.convolve(
			lanes, at, line, positions, _window.strides()
		)
		RLRuntime.OnnxDense.activate(product, activation)
		vectors.append_array(product)
	if gives_lanes:
		return [RLRuntime.OnnxTensor.of_lanes(vectors, shape)]
	var count: int = positions.x * positions.y
	var wide: int = 4 * _image_kernel.made_blocks
	var floats: PackedFloat32Array = RLRuntime.OnnxDense.to_floats(vectors)
	var places: PackedInt64Array = _turning(count, shape[1], wide)
	if dims[0] == 1:
		floats = RLRuntime.OnnxTensor.take_floats(floats, places)
		return [RLRuntime.OnnxTensor.of_floats(floats, shape)]
	var numbers: PackedFloat32Array = []
	for piece: int in dims[0]:
		var part: PackedFloat32Array = floats.slice(
			piece * count * wide, (piece + 1) * count * wide
		)
		numbers.append_array(RLRuntime.OnnxTensor.take_floats(part, places))
	return [RLRuntime.OnnxTensor.of_floats(numbers, shape)]


## One image of a batch as vectors of channels, with its padding.
func _lanes_of(
	image: RLRuntime.OnnxTensor, dims: PackedInt64Array, piece: int
) -> PackedVector4Array:
	var area: int = dims[1] * dims[2] * dims[3]
	var part: PackedFloat32Array = image.floats.slice(piece * area, (piece + 1) * area)
	if dims != _lanes_for:
		_lanes_for = dims
		_lanes = _lane_places(dims)
	part.append(0.0)
	return RLRuntime.OnnxDense.to_vectors(RLRuntime.OnnxTensor.take_floats(part, _lanes))


## Where each number of the vectors is in the image; the one after the last where it is none.
func _lane_places(dims: PackedInt64Array) -> PackedInt64Array:
	var pads: PackedInt64Array = _window.pads()
	var area: int = dims[2] * dims[3]
	var step: int = dims[1] if _takes_last else 1
	var places: PackedInt64Array = []
	for y: int in range(-pads[0], dims[2] + pads[2]):
		for x: int in range(-pads[1], dims[3] + pads[3]):
			var is_inside: bool = y >= 0 and y < dims[2] and x >= 0 and x < dims[3]
			for channel: int in 4 * _image_kernel.blocks:
				var place: int = (y * dims[3] + x) * step + channel * (1 if _takes_last else area)
				var is_there: bool = is_inside and channel < dims[1]
				places.append(place if is_there else area * dims[1])
	return places


## One image of a batch of vectors, with padding around it.
func _padded(image: RLRuntime.OnnxTensor, dims: PackedInt64Array, piece: int) -> PackedVector4Array:
	var pads: PackedInt64Array = _window.pads()
	var blocks: int = _image_kernel.blocks
	var line: int = dims[3] * blocks
	var wide: int = line + (pads[1] + pads[3]) * blocks
	var made: PackedVector4Array = []
	made.resize(pads[0] * wide)
	for y: int in dims[2]:
		made.resize(made.size() + pads[1] * blocks)
		var from: int = (piece * dims[2] + y) * line
		made.append_array(image.lanes.slice(from, from + line))
		made.resize(made.size() + pads[3] * blocks)
	made.resize(made.size() + pads[2] * wide)
	return made


## Places that turn positions × channels, `wide` numbers a position, into channels × positions.
func _turning(rows: int, columns: int, wide: int) -> PackedInt64Array:
	if _turned_for != Vector3i(rows, columns, wide):
		_turned_for = Vector3i(rows, columns, wide)
		var lists: Array[PackedInt64Array] = [
			RLRuntime.OnnxShape.multiples(columns, 1), RLRuntime.OnnxShape.multiples(rows, wide)
		]
		_turned = RLRuntime.OnnxShape.places(lists)
	return _turned
