class_name GodotRLBatch
extends RefCounted
## Observations and memories of several agents as a model's inputs, and its outputs agent by agent.

var error: String = ""

var _plan: OnnxPlan
var _memory: Dictionary[String, String]
var _states: Dictionary[Variant, Dictionary]


func _init(
	plan: OnnxPlan, memory: Dictionary[String, String], states: Dictionary[Variant, Dictionary]
) -> void:
	_plan = plan
	_memory = memory
	_states = states


## Whether any number of agents may be run at once.
func is_free() -> bool:
	for port: OnnxPort in _plan.inputs:
		if _axis(port) < 0:
			return false
	return true


func inputs(many: Array, agents: Array) -> Array[OnnxTensor]:
	error = ""
	var made: Array[OnnxTensor] = []
	for port: OnnxPort in _plan.inputs:
		var shape: PackedInt64Array = port.filled(1)
		var axis: int = _axis(port)
		if axis >= 0:
			shape[axis] = many.size()
		var pieces: Array[PackedFloat32Array] = []
		for index: int in many.size():
			var size: int = OnnxShape.count(shape) / (many.size() if axis >= 0 else 1)
			if _memory.has(port.name):
				pieces.append(_remembered(port.name, agents[index], size))
			elif port.name == GodotRLModel.LENGTHS:
				pieces.append(PackedFloat32Array([1.0]))
			else:
				pieces.append(_observed(port, many[index], size))
			if error:
				return []
		made.append(_tensor(_joined(pieces, shape, axis), shape, port.type))
	return made


## Each agent's outputs; what a memory needs next time is kept.
func outputs(made: Array[OnnxTensor], agents: Array) -> Array[Dictionary]:
	var results: Array[Dictionary] = []
	for _agent: Variant in agents:
		results.append({})
	for index: int in made.size():
		var name: String = _plan.outputs[index].name
		var pieces: Array[PackedFloat32Array] = _split(made[index], agents.size(), name)
		for place: int in pieces.size():
			results[place][name] = pieces[place]
	for input: String in _memory:
		for place: int in agents.size():
			var state: Dictionary = _states.get_or_add(agents[place], {})
			state[input] = results[place].get(_memory[input])
	return results


## The axis along which agents are counted: the first free one; -1 if there is none.
func _axis(port: OnnxPort) -> int:
	return port.dims.find(-1)


func _remembered(input: String, agent: Variant, size: int) -> PackedFloat32Array:
	var state: Dictionary = _states.get(agent, {})
	var kept: Variant = state.get(input)
	if kept is PackedFloat32Array and kept.size() == size:
		return kept
	var nothing: PackedFloat32Array = []
	nothing.resize(size)
	return nothing


func _observed(port: OnnxPort, obs: Variant, size: int) -> PackedFloat32Array:
	var numbers: PackedFloat32Array = []
	if obs is Dictionary:
		if obs.has(port.name):
			numbers = _numbers(obs[port.name])
		elif _observations() == 1:
			for key: Variant in obs:
				numbers.append_array(_numbers(obs[key]))
		else:
			error = "the observation lacks '%s'" % port.name
	elif _observations() == 1:
		numbers = _numbers(obs)
	else:
		error = "the model has several inputs: give a Dictionary"
	if not error and numbers.size() != size:
		error = "'%s' has %d numbers, the model takes %d" % [port.name, numbers.size(), size]
	return numbers


func _observations() -> int:
	var count: int = 0
	for port: OnnxPort in _plan.inputs:
		count += 0 if _memory.has(port.name) or port.name == GodotRLModel.LENGTHS else 1
	return count


## Lists, nested or not, packed arrays, a single number, and images in hexadecimal.
func _numbers(value: Variant) -> PackedFloat32Array:
	match typeof(value):
		TYPE_PACKED_FLOAT32_ARRAY:
			return value
		TYPE_INT, TYPE_FLOAT, TYPE_BOOL:
			return PackedFloat32Array([float(value)])
		TYPE_STRING:
			return _numbers((value as String).hex_decode())
	var numbers: PackedFloat32Array = []
	if typeof(value) < TYPE_ARRAY or typeof(value) > TYPE_PACKED_FLOAT64_ARRAY:
		error = "an observation is made of numbers, not of %s" % type_string(typeof(value))
		return numbers
	for element: Variant in value:
		if typeof(element) == TYPE_FLOAT or typeof(element) == TYPE_INT:
			numbers.append(element)
		else:
			numbers.append_array(_numbers(element))
	return numbers


## Pieces of the agents side by side along an axis.
func _joined(
	pieces: Array[PackedFloat32Array], shape: PackedInt64Array, axis: int
) -> PackedFloat32Array:
	if pieces.size() == 1:
		return pieces[0]
	var joined: PackedFloat32Array = []
	var outer: int = OnnxShape.count(shape.slice(0, maxi(axis, 0)))
	for row: int in outer:
		for piece: PackedFloat32Array in pieces:
			var width: int = piece.size() / outer
			joined.append_array(piece.slice(row * width, (row + 1) * width))
	return joined


func _tensor(numbers: PackedFloat32Array, shape: PackedInt64Array, type: int) -> OnnxTensor:
	var tensor: OnnxTensor = OnnxTensor.of_floats(numbers, shape)
	return tensor if type == OnnxTensor.Type.FLOAT else OnnxCast.cast(tensor, type)


## The agents' parts of an output: along the first axis, or that of the memory it goes back into.
func _split(tensor: OnnxTensor, count: int, name: String) -> Array[PackedFloat32Array]:
	var numbers: PackedFloat32Array = tensor.as_floats()
	var pieces: Array[PackedFloat32Array] = []
	if count == 1:
		pieces.append(numbers)
		return pieces
	var axis: int = 0
	for port: OnnxPort in _plan.inputs:
		if _memory.get(port.name, "") == name:
			axis = maxi(_axis(port), 0)
	if axis >= tensor.rank() or tensor.dims[axis] != count:
		error = "'%s' is %s for %d agents" % [name, tensor.describe(), count]
		return []
	var width: int = OnnxShape.count(tensor.dims.slice(axis + 1))
	var outer: int = OnnxShape.count(tensor.dims.slice(0, axis))
	for agent: int in count:
		var piece: PackedFloat32Array = []
		for row: int in outer:
			var start: int = (row * count + agent) * width
			piece.append_array(numbers.slice(start, start + width))
		pieces.append(piece)
	return pieces
