extends RefCounted
## Takes the bias and the activation that follow a dense layer into it.


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
		if not step is RLRuntime.OnnxProduct or step.outputs.size() != 1:
			continue
		var follower: RLRuntime.OnnxStep = _only_reader(step, readers)
		while follower and _absorb(step, follower):
			gone[follower] = true
			step.outputs = follower.outputs
			follower = _only_reader(step, readers)
	return steps.filter(func(step: RLRuntime.OnnxStep) -> bool: return not gone.has(step))


static func _only_reader(
	step: RLRuntime.OnnxStep, readers: Dictionary[int, Array]
) -> RLRuntime.OnnxStep:
	var found: Array = readers.get(step.outputs[0], [])
	var reader: RLRuntime.OnnxStep = found[0] if found.size() == 1 else null
	return reader if reader and reader.outputs.size() == 1 else null


static func _absorb(product: RLRuntime.OnnxProduct, follower: RLRuntime.OnnxStep) -> bool:
	if follower.node.op == "Add" and follower.known.size() == 2:
		var bias: RLRuntime.OnnxTensor = (
			follower.known[1] if follower.known[1] else follower.known[0]
		)
		return bias != null and product.absorb_bias(bias)
	return follower is RLRuntime.OnnxUnary and product.absorb_activation(follower.node.op)
