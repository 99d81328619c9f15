extends RefCounted
## A window that moves over images of any number of axes, as convolutions and pools have it.

var kernel: PackedInt64Array = []
## Sizes of the result.
var positions: PackedInt64Array = []

var _strides: PackedInt64Array = []
var _dilations: PackedInt64Array = []
var _pads: PackedInt64Array = []
var _auto_pad: String = "NOTSET"
var _rounds_up: bool = false
var _places: PackedInt64Array = []
var _places_of: PackedInt64Array = []


func _init(node: RLRuntime.OnnxNode) -> void:
	kernel = node.wholes("kernel_shape")
	_strides = node.wholes("strides")
	_dilations = node.wholes("dilations")
	_pads = node.wholes("pads")
	_auto_pad = node.text("auto_pad", "NOTSET")
	_rounds_up = node.whole("ceil_mode") != 0


## Whether it has two axes, and its places lie side by side.
func is_plain() -> bool:
	var rank: int = maxi(kernel.size(), maxi(_strides.size(), _pads.size() / 2))
	return rank in [0, 2] and not _rounds_up and _dilations.count(1) == _dilations.size()


func strides() -> Vector2i:
	return Vector2i(_strides[0], _strides[1])


## Before the first and after the last line and column: top, left, bottom, right.
func pads() -> PackedInt64Array:
	return _pads


## Lay it on an image of these sizes; returns what is wrong, or "".
func fit(image: PackedInt64Array) -> String:
	var rank: int = image.size()
	_strides = _filled(_strides, rank, 1)
	_dilations = _filled(_dilations, rank, 1)
	_pads = _filled(_pads, 2 * rank, 0)
	positions = []
	if kernel.size() != rank or _strides.size() != rank or _dilations.size() != rank:
		return (
			"a window of %s on %s"
			% [RLRuntime.OnnxShape.text(kernel), RLRuntime.OnnxShape.text(image)]
		)
	if _pads.size() != 2 * rank:
		return "%d pads for %d axes" % [_pads.size(), rank]
	for axis: int in rank:
		var problem: String = _fit_axis(axis, rank, image[axis])
		if problem:
			return problem
	return ""


## For every position, and every place in the window: the element of an image with this many
## channels; in the padding, the one after the last. Ordered by position, then channel, then place
## in the window.
func places(channels: int, image: PackedInt64Array) -> PackedInt64Array:
	var key: PackedInt64Array = [channels]
	key.append_array(image)
	if key == _places_of:
		return _places
	var padded: PackedInt64Array = [channels]
	var inside: Array[PackedInt64Array] = [
		RLRuntime.OnnxShape.multiples(channels, RLRuntime.OnnxShape.count(image))
	]
	var steps: PackedInt64Array = RLRuntime.OnnxShape.strides(image)
	for axis: int in image.size():
		var list: PackedInt64Array = []
		var reach: int = (
			(positions[axis] - 1) * _strides[axis] + _dilations[axis] * (kernel[axis] - 1)
		)
		for place: int in range(-_pads[axis], reach + 1 - _pads[axis]):
			var is_inside: bool = place >= 0 and place < image[axis]
			list.append(place * steps[axis] if is_inside else RLRuntime.OnnxRearrange.NOWHERE)
		inside.append(list)
		padded.append(list.size())
	var sources: PackedInt64Array = RLRuntime.OnnxShape.places(inside)
	steps = RLRuntime.OnnxShape.strides(padded)
	var lists: Array[PackedInt64Array] = []
	for axis: int in image.size():
		lists.append(
			RLRuntime.OnnxShape.multiples(positions[axis], _strides[axis] * steps[axis + 1])
		)
	lists.append(RLRuntime.OnnxShape.multiples(channels, steps[0]))
	for axis: int in image.size():
		lists.append(
			RLRuntime.OnnxShape.multiples(kernel[axis], _dilations[axis] * steps[axis + 1])
		)
	_places = RLRuntime.OnnxShape.places(lists)
	var outside: int = channels * RLRuntime.OnnxShape.count(image)
	for index: int in _places.size():
		var source: int = sources[_places[index]]
		_places[index] = source if source >= 0 else outside
	_places_of = key
	return _places


## How many elements `places` looks at, for a budget.
func work(channels: int, image: PackedInt64Array) -> int:
	var area: int = channels
	for axis: int in image.size():
		area *= image[axis] + _pads[axis] + _pads[axis + image.size()] + kernel[axis]
	return (
		area + channels * RLRuntime.OnnxShape.count(positions) * RLRuntime.OnnxShape.count(kernel)
	)


## How many of a window's places count for an average, at this position, padding included.
func counted(position: PackedInt64Array, image: PackedInt64Array) -> int:
	var product: int = 1
	for axis: int in image.size():
		var start: int = position[axis] * _strides[axis] - _pads[axis]
		var end: int = image[axis] + _pads[axis + image.size()]
		var within: int = 0
		for place: int in kernel[axis]:
			within += 1 if start + place * _dilations[axis] < end else 0
		product *= within
	return product


func _fit_axis(axis: int, rank: int, size: int) -> String:
	var limit: int = 4096
	var stride: int = _strides[axis]
	var reach: int = _dilations[axis] * (kernel[axis] - 1) + 1
	if stride < 1 or _dilations[axis] < 1 or kernel[axis] < 1 or stride > limit or reach > limit:
		return "a window of %d by %d" % [kernel[axis], stride]
	if _auto_pad in ["SAME_UPPER", "SAME_LOWER"]:
		var wanted: int = (size + stride - 1) / stride
		var missing: int = maxi(0, (wanted - 1) * stride + reach - size)
		var small: int = missing >> 1
		_pads[axis] = small if _auto_pad == "SAME_UPPER" else missing - small
		_pads[axis + rank] = missing - _pads[axis]
	elif _auto_pad not in ["NOTSET", "VALID", ""]:
		return "its auto_pad '%s' cannot be run" % _auto_pad
	var before: int = _pads[axis]
	var after: int = _pads[axis + rank]
	if before < 0 or after < 0 or maxi(before, after) > limit:
		return "pads of %d and %d" % [before, after]
	var free: int = size + before + after - reach
	if free < 0:
		return "a window of %d on %d elements" % [reach, size + before + after]
	var count: int = free / stride + 1
	if _rounds_up and free % stride != 0 and count * stride < size + before:
		count += 1
	positions.append(count)
	return ""


func _filled(list: PackedInt64Array, size: int, value: int) -> PackedInt64Array:
	if list:
		return list
	var filled: PackedInt64Array = []
	filled.resize(size)
	filled.fill(value)
	return filled
