extends RLRuntime.OnnxStep
## Softmax and its kin, and the normalisations.

var _axis: int = -1
var _is_flat: bool = false
var _epsilon: float = 1e-5


func prepare() -> void:
	match node.op:
		"Softmax", "LogSoftmax", "Hardmax":
			_is_flat = opset < 13
			_axis = node.whole("axis", 1 if _is_flat else -1)
		"LayerNormalization":
			_axis = node.whole("axis", -1)
			_epsilon = node.real("epsilon", 1e-5)
			node.ignore(["stash_type"])
		_:
			_epsilon = node.real("epsilon", 1e-5)
			node.ignore(["momentum", "spatial"])
			if node.whole("training_mode") != 0 or node.outputs.size() > 1:
				fail("it is in training mode")


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, 5) or not is_floating(given[0]):
		return []
	if not may_make(given[0].dims, 4):
		return []
	match node.op:
		"LayerNormalization":
			return _layer(given)
		"BatchNormalization":
			return _batch(given)
		"InstanceNormalization":
			return _instance(given)
	return _soft(given[0])


func _soft(tensor: RLRuntime.OnnxTensor) -> Array[RLRuntime.OnnxTensor]:
	var axis: int = axis_in(_axis, tensor.rank())
	if error:
		return []
	var size: int = (
		RLRuntime.OnnxShape.count(tensor.dims.slice(axis)) if _is_flat else tensor.dims[axis]
	)
	var inner: int = 1 if _is_flat else RLRuntime.OnnxShape.count(tensor.dims.slice(axis + 1))
	var made: PackedFloat32Array = tensor.floats.duplicate()
	for outer: int in RLRuntime.OnnxShape.count(tensor.dims.slice(0, axis)):
		for column: int in inner:
			_soften(made, outer * size * inner + column, size, inner)
	return [RLRuntime.OnnxTensor.of_floats(made, tensor.dims, tensor.type)]


func _soften(values: PackedFloat32Array, start: int, size: int, step: int) -> void:
	var largest: float = -INF
	var best: int = 0
	for index: int in size:
		if values[start + index * step] > largest:
			largest = values[start + index * step]
			best = index
	if node.op == "Hardmax":
		for index: int in size:
			values[start + index * step] = 1.0 if index == best else 0.0
		return
	var sum: float = 0.0
	for index: int in size:
		sum += exp(values[start + index * step] - largest)
	if node.op == "LogSoftmax":
		var shift: float = largest + log(sum)
		for index: int in size:
			values[start + index * step] -= shift
		return
	for index: int in size:
		values[start + index * step] = exp(values[start + index * step] - largest) / sum


func _layer(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	var tensor: RLRuntime.OnnxTensor = given[0]
	if not has_inputs(given, 2, 3):
		return []
	var axis: int = axis_in(_axis, tensor.rank())
	if error:
		return []
	var inner: PackedInt64Array = tensor.dims.slice(axis)
	var scale: PackedFloat32Array = _repeated(given[1], inner)
	var shift: PackedFloat32Array = _repeated(optional(given, 2), inner)
	if error:
		return []
	var size: int = RLRuntime.OnnxShape.count(inner)
	var rows: int = RLRuntime.OnnxShape.count(tensor.dims.slice(0, axis))
	var made: PackedFloat32Array = tensor.floats.duplicate()
	var means: PackedFloat32Array = []
	var inverses: PackedFloat32Array = []
	for row: int in rows:
		var moments: Vector2 = _moments(made, row * size, size)
		means.append(moments.x)
		inverses.append(moments.y)
		for index: int in size:
			var value: float = (made[row * size + index] - moments.x) * moments.y * scale[index]
			made[row * size + index] = value + (shift[index] if shift else 0.0)
	var outer: PackedInt64Array = tensor.dims.duplicate()
	for place: int in range(axis, tensor.rank()):
		outer[place] = 1
	return [
		RLRuntime.OnnxTensor.of_floats(made, tensor.dims, tensor.type),
		RLRuntime.OnnxTensor.of_floats(means, outer),
		RLRuntime.OnnxTensor.of_floats(inverses, outer),
	]


func _repeated(tensor: RLRuntime.OnnxTensor, shape: PackedInt64Array) -> PackedFloat32Array:
	if not tensor:
		return []
	if not tensor.is_float() or RLRuntime.OnnxShape.broadcast(tensor.dims, shape) != shape:
		fail("%s does not go with it" % tensor.describe())
		return []
	return RLRuntime.OnnxShape.spread(tensor, shape).floats


## Mean, and one over the standard deviation.
func _moments(values: PackedFloat32Array, start: int, size: int) -> Vector2:
	var sum: float = 0.0
	for index: int in range(start, start + size):
		sum += values[index]
	var mean: float = sum / maxi(size, 1)
	var squares: float = 0.0
	for index: int in range(start, start + size):
		squares += (values[index] - mean) * (values[index] - mean)
	return Vector2(mean, 1.0 / sqrt(squares / maxi(size, 1) + _epsilon))


func _batch(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not _has_channels(given, 5):
		return []
	var tensor: RLRuntime.OnnxTensor = given[0]
	var channels: int = tensor.dims[1]
	var inner: int = RLRuntime.OnnxShape.count(tensor.dims.slice(2))
	var made: PackedFloat32Array = tensor.floats.duplicate()
	for channel: int in channels:
		var inverse: float = given[1].floats[channel] / sqrt(given[4].floats[channel] + _epsilon)
		var shift: float = given[2].floats[channel] - given[3].floats[channel] * inverse
		for row: int in tensor.dims[0]:
			var start: int = (row * channels + channel) * inner
			for index: int in range(start, start + inner):
				made[index] = made[index] * inverse + shift
	return [RLRuntime.OnnxTensor.of_floats(made, tensor.dims, tensor.type)]


func _instance(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not _has_channels(given, 3):
		return []
	var tensor: RLRuntime.OnnxTensor = given[0]
	var inner: int = RLRuntime.OnnxShape.count(tensor.dims.slice(2))
	var made: PackedFloat32Array = tensor.floats.duplicate()
	for row: int in tensor.dims[0] * tensor.dims[1]:
		var channel: int = row % tensor.dims[1]
		var moments: Vector2 = _moments(made, row * inner, inner)
		for index: int in range(row * inner, (row + 1) * inner):
			made[index] = (
				(made[index] - moments.x) * moments.y * given[1].floats[channel]
				+ given[2].floats[channel]
			)
	return [RLRuntime.OnnxTensor.of_floats(made, tensor.dims, tensor.type)]


## Whether all inputs after the first are one number a channel.
func _has_channels(given: Array[RLRuntime.OnnxTensor], inputs_wanted: int) -> bool:
	if not has_inputs(given, inputs_wanted, inputs_wanted):
		return false
	if given[0].rank() < 2:
		fail("it cannot work on %s" % given[0].describe())
		return false
	for index: int in range(1, inputs_wanted):
		var wanted: PackedInt64Array = [given[0].dims[1]]
		if given[index].dims != wanted or not given[index].is_float():
			fail("%s does not go with %s" % [given[index].describe(), given[0].describe()])
			return false
	return true
