extends RefCounted
## Takes what stands around a dense layer or a convolution into it: bias, activation, scaling; and
## joins a quantization with its inverse.


## The steps without those that were taken in; what is in `kept` must stay readable.
static func fused(
	steps: Array[RLRuntime.OnnxStep], kept: PackedInt32Array
) -> Array[RLRuntime.OnnxStep]:
	var readers: Dictionary[int, Array] = {}
	for slot: int in kept:
		readers.get_or_add(slot, []).append(null)
	for step: RLRuntime.OnnxStep in steps:
		for slot: int in step.inputs:
			readers.get_or_add(slot, []).append(step)
	var gone: Dictionary[RLRuntime.OnnxStep, bool] = {}
	for step: RLRuntime.OnnxStep in steps:
		var takes_more: bool = (
			step is RLRuntime.OnnxProduct
			or step is RLRuntime.OnnxConv
			or step is RLRuntime.OnnxQuantize
		)
		if not takes_more or step.outputs.size() != 1:
			continue
		var follower: RLRuntime.OnnxStep = _only_reader(step, readers)
		while follower and _absorb(step, follower):
			gone[follower] = true
			step.outputs = follower.outputs
			follower = _only_reader(step, readers)
	_absorb_sources(steps, readers, gone)
	_pass_lanes(steps, readers)
	return steps.filter(func(step: RLRuntime.OnnxStep) -> bool: return not gone.has(step))


static func _only_reader(
	step: RLRuntime.OnnxStep, readers: Dictionary[int, Array]
) -> RLRuntime.OnnxStep:
	var found: Array = readers.get(step.outputs[0], [])
	var reader: RLRuntime.OnnxStep = found[0] if found.size() == 1 else null
	return reader if reader and reader.outputs.size() == 1 else null


static func _absorb(step: RLRuntime.OnnxStep, follower: RLRuntime.OnnxStep) -> bool:
	var product: RLRuntime.OnnxProduct = step as RLRuntime.OnnxProduct
	if product and follower.node.op == "Add" and follower.known.size() == 2:
		var bias: RLRuntime.OnnxTensor = (
			follower.known[1] if follower.known[1] else follower.known[0]
		)
		return bias != null and product.absorb_bias(bias)
	if step is RLRuntime.OnnxQuantize:
		return step.absorb_inverse(follower)
	return follower is RLRuntime.OnnxUnary and step.absorb_activation(follower.node.op)


## Let convolutions take in what prepares their images.
static func _absorb_sources(
	steps: Array[RLRuntime.OnnxStep],
	readers: Dictionary[int, Array],
	gone: Dictionary[RLRuntime.OnnxStep, bool]
) -> void:
	var makers: Dictionary[int, RLRuntime.OnnxStep] = {}
	for step: RLRuntime.OnnxStep in steps:
		if step.outputs and not gone.has(step):
			makers[step.outputs[0]] = step
	for step: RLRuntime.OnnxStep in steps:
		var conv: RLRuntime.OnnxConv = step as RLRuntime.OnnxConv
		if not conv or gone.has(step):
			continue
		var source: RLRuntime.OnnxStep = makers.get(conv.inputs[0])
		while source and readers[conv.inputs[0]].size() == 1 and conv.absorb_source(source):
			gone[source] = true
			conv.inputs[0] = source.inputs[0]
			readers[conv.inputs[0]] = readers[conv.inputs[0]].map(
				func(reader: RLRuntime.OnnxStep) -> RLRuntime.OnnxStep:
					return conv if reader == source else reader
			)
			source = makers.get(conv.inputs[0])


## Let convolutions and pools hand images on as vectors where only such steps read them.
static func _pass_lanes(steps: Array[RLRuntime.OnnxStep], readers: Dictionary[int, Array]) -> void:
	for index: int in range(steps.size() - 1, -1, -1):
		var step: RLRuntime.OnnxStep = steps[index]
		if step is RLRuntime.OnnxConv and step.can_have_lanes():
			step.gives_lanes = _takes_lanes(_only_reader(step, readers), step)
		elif step is RLRuntime.OnnxPool and step.can_have_lanes():
			step.has_lanes = _takes_lanes(_only_reader(step, readers), step)


static func _takes_lanes(reader: RLRuntime.OnnxStep, maker: RLRuntime.OnnxStep) -> bool:
	if not reader or reader.inputs[0] != maker.outputs[0]:
		return false
	if reader is RLRuntime.OnnxConv:
		return reader.can_have_lanes() and not reader.takes_last()
	return reader is RLRuntime.OnnxPool and reader.has_lanes
