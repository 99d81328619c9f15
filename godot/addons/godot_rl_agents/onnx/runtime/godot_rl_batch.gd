extends RefCounted
## Observations and memories of several agents as a model's inputs, and its outputs agent by agent.

enum Role { OBSERVATION, MEMORY, LENGTHS }

var error: String = ""
## The output that becomes an input again the next time, by the input's name.
var memory: Dictionary[String, String] = {}
## Whether any number of agents may be run at once.
var is_free: bool = true

var _plan: RLRuntime.OnnxPlan
## Of each input: what it is, the axis along which agents are counted (-1 if none), and how many
## numbers belong to one agent.
var _roles: PackedInt32Array = []
var _axes: PackedInt32Array = []
var _sizes: PackedInt32Array = []
var _shapes: Array[PackedInt64Array] = []
## Of each output: the axis along which agents are counted.
var _output_axes: PackedInt32Array = []
var _observations: int = 0
## Agent → input → the agent's part of that input.
var _states: Dictionary[Variant, Dictionary] = {}


func _init(plan: RLRuntime.OnnxPlan) -> void:
	_plan = plan
	var outputs_named: PackedStringArray = []
	for port: RLRuntime.OnnxPort in plan.outputs:
		outputs_named.append(port.name)
		_output_axes.append(0)
	for port: RLRuntime.OnnxPort in plan.inputs:
		var partner: int = outputs_named.find(_partner(port.name))
		var axis: int = port.dims.find(-1)
		_axes.append(axis)
		_shapes.append(port.filled(1))
		_sizes.append(RLRuntime.OnnxShape.count(port.filled(1)))
		is_free = is_free and axis >= 0
		if partner >= 0 and outputs_named[partner] != port.name:
			_roles.append(Role.MEMORY)
			memory[port.name] = outputs_named[partner]
			_output_axes[partner] = maxi(axis, 0)
		elif port.name == GodotRLModel.LENGTHS:
			_roles.append(Role.LENGTHS)
		else:
			_roles.append(Role.OBSERVATION)
			_observations += 1


## Forget what one agent has seen, or what all have.
func reset(agent: Variant = null) -> void:
	if agent == null:
		_states.clear()
	else:
		_states.erase(agent)


## The inputs that are observations, by name.
func observation_shapes() -> Dictionary[String, PackedInt64Array]:
	var shapes: Dictionary[String, PackedInt64Array] = {}
	for index: int in _roles.size():
		if _roles[index] == Role.OBSERVATION:
			shapes[_plan.inputs[index].name] = _plan.inputs[index].dims
	return shapes


func inputs(many: Array, agents: Array) -> Array[RLRuntime.OnnxTensor]:
	error = ""
	var made: Array[RLRuntime.OnnxTensor] = []
	for index: int in _roles.size():
		var port: RLRuntime.OnnxPort = _plan.inputs[index]
		var shape: PackedInt64Array = _shapes[index]
		if _axes[index] >= 0 and many.size() != 1:
			shape = shape.duplicate()
			shape[_axes[index]] = many.size()
		var numbers: PackedFloat32Array = _gathered(index, many, agents)
		if error:
			return []
		var tensor: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.of_floats(numbers, shape)
		if port.type != RLRuntime.OnnxTensor.Type.FLOAT:
			tensor = RLRuntime.OnnxCast.cast(tensor, port.type)
		made.append(tensor)
	return made


## Each agent's outputs; what a memory needs next time is kept.
func outputs(made: Array[RLRuntime.OnnxTensor], agents: Array) -> Array[Dictionary]:
	var results: Array[Dictionary] = []
	for _agent: Variant in agents:
		results.append({})
	for index: int in made.size():
		_hand_out(made[index], index, results)
		if error:
			return []
	for input: String in memory:
		for place: int in agents.size():
			var state: Dictionary = _states.get_or_add(agents[place], {})
			state[input] = results[place][memory[input]]
	return results


func _gathered(index: int, many: Array, agents: Array) -> PackedFloat32Array:
	if many.size() == 1:
		return _piece(index, many[0], agents[0])
	var pieces: Array[PackedFloat32Array] = []
	for place: int in many.size():
		pieces.append(_piece(index, many[place], agents[place]))
		if error:
			return []
	var joined: PackedFloat32Array = []
	var outer: int = RLRuntime.OnnxShape.count(_shapes[index].slice(0, maxi(_axes[index], 0)))
	if outer == 1:
		for piece: PackedFloat32Array in pieces:
			joined.append_array(piece)
		return joined
	var width: int = _sizes[index] / maxi(outer, 1)
	for row: int in outer:
		for piece: PackedFloat32Array in pieces:
			joined.append_array(piece.slice(row * width, (row + 1) * width))
	return joined


## One agent's part of an input.
func _piece(index: int, obs: Variant, agent: Variant) -> PackedFloat32Array:
	var numbers: PackedFloat32Array = []
	match _roles[index]:
		Role.LENGTHS:
			numbers.append(1.0)
		Role.MEMORY:
			var state: Dictionary = _states.get(agent, {})
			numbers = state.get(_plan.inputs[index].name, numbers)
			if numbers.size() != _sizes[index]:
				numbers = []
				numbers.resize(_sizes[index])
		_:
			numbers = _observed(_plan.inputs[index].name, obs)
			if not error and numbers.size() != _sizes[index]:
				error = (
					"'%s' has %d numbers, the model takes %d"
					% [_plan.inputs[index].name, numbers.size(), _sizes[index]]
				)
	return numbers


func _observed(name: String, obs: Variant) -> PackedFloat32Array:
	if not obs is Dictionary:
		if _observations > 1:
			error = "the model has several inputs: give a Dictionary"
		return _numbers(obs)
	var seen: Dictionary = obs
	if seen.has(name):
		return _numbers(seen[name])
	var numbers: PackedFloat32Array = []
	if _observations > 1:
		error = "the observation lacks '%s'" % name
		return numbers
	for key: Variant in seen:
		numbers.append_array(_numbers(seen[key]))
	return numbers


## Lists, nested or not, packed arrays, a single number, and images in hexadecimal.
func _numbers(value: Variant) -> PackedFloat32Array:
	match typeof(value):
		TYPE_PACKED_FLOAT32_ARRAY:
			return value
		TYPE_INT, TYPE_FLOAT, TYPE_BOOL:
			return PackedFloat32Array([float(value)])
		TYPE_STRING:
			return _numbers((value as String).hex_decode())
		TYPE_ARRAY:
			if value and typeof(value[0]) == TYPE_FLOAT and typeof(value[-1]) == TYPE_FLOAT:
				return PackedFloat32Array(value as Array)
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


## Give every agent its part of an output.
func _hand_out(tensor: RLRuntime.OnnxTensor, index: int, results: Array[Dictionary]) -> void:
	var name: String = _plan.outputs[index].name
	var numbers: PackedFloat32Array = tensor.as_floats()
	var count: int = results.size()
	if count == 1:
		results[0][name] = numbers
		return
	var axis: int = _output_axes[index]
	if axis >= tensor.rank() or tensor.dims[axis] != count:
		error = "'%s' is %s for %d agents" % [name, tensor.describe(), count]
		return
	var width: int = RLRuntime.OnnxShape.count(tensor.dims.slice(axis + 1))
	var outer: int = RLRuntime.OnnxShape.count(tensor.dims.slice(0, axis))
	for agent: int in count:
		var piece: PackedFloat32Array = numbers.slice(agent * width, (agent + 1) * width)
		for row: int in range(1, outer):
			var start: int = (row * count + agent) * width
			piece.append_array(numbers.slice(start, start + width))
		results[agent][name] = piece


## The name of the output that an input's next value comes from: `state_ins` and `state_outs`,
## `state_in_0` and `state_out_0`, `h_in` and `h_out`.
func _partner(input: String) -> String:
	var parts: PackedStringArray = input.split("_")
	for index: int in parts.size():
		if parts[index] == "in" or parts[index] == "ins":
			parts[index] = parts[index].replace("in", "out")
	return "_".join(parts)
