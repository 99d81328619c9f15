extends RefCounted
## A graph made ready to run: steps in order, constant parts computed, what does not fit refused.

## Seconds that the trial at load, and one prediction, may take.
const TRIAL_SEC: float = 5.0
const PREDICTION_SEC: float = 30.0
## Types in which sizes and places are given.
const SIZES: Array[int] = [RLRuntime.OnnxTensor.Type.INT32, RLRuntime.OnnxTensor.Type.INT64]

var error: String = ""
var inputs: Array[RLRuntime.OnnxPort] = []
var outputs: Array[RLRuntime.OnnxPort] = []
## The operators of the graph, each once, in alphabetical order.
var operators: PackedStringArray = []

## Whether a run notes how long each step takes, in `usec`.
var is_timed: bool = false
var usec: PackedInt64Array = []

var _steps: Array[RLRuntime.OnnxStep] = []
## The values no longer needed after each step.
var _released: Array[PackedInt32Array] = []
var _slots: Dictionary[String, int] = {}
var _constants: Array[RLRuntime.OnnxTensor] = []
var _input_slots: PackedInt32Array = []
var _output_slots: PackedInt32Array = []
## What the trial at load gave.
var _tried: Array[RLRuntime.OnnxTensor] = []
var _budget: RLRuntime.OnnxBudget = RLRuntime.OnnxBudget.new(RLRuntime.OnnxBudget.TRIAL, TRIAL_SEC)


## Make a plan of what a file says; false, and `error` says why, if it cannot run.
func prepare(file: RLRuntime.OnnxFile) -> bool:
	for port: RLRuntime.OnnxPort in file.inputs:
		if not file.constants.has(port.name):
			inputs.append(port)
	outputs = file.outputs
	if outputs.is_empty():
		return _fail("it has no output")
	for port: RLRuntime.OnnxPort in inputs:
		if not RLRuntime.OnnxTensor.is_known(port.type):
			return _fail("its input %s is of a type that cannot be run" % port.describe())
	var order: Array[RLRuntime.OnnxNode] = RLRuntime.OnnxOrder.of(file, self)
	if error:
		return false
	for port: RLRuntime.OnnxPort in inputs:
		_input_slots.append(_slot(port.name))
	for name: String in file.constants:
		_constants[_slot(name)] = file.constants[name]
	for node: RLRuntime.OnnxNode in order:
		if node.op not in operators:
			operators.append(node.op)
	operators.sort()
	for node: RLRuntime.OnnxNode in order:
		_add_step(node, file.opset)
		if error:
			return false
	for port: RLRuntime.OnnxPort in outputs:
		_output_slots.append(_slot(port.name))
	_steps = RLRuntime.OnnxFusion.fused(_steps, _output_slots)
	_plan_releases()
	return _try()


## Run the graph: one tensor an input, in order, gives one an output; [] when there is an `error`.
func run(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	error = ""
	for index: int in inputs.size():
		if not _fits(given[index], inputs[index]):
			return []
	_budget.refill(RLRuntime.OnnxBudget.PREDICTION, PREDICTION_SEC)
	return _run(given)


## The node and the operators of every step, in order; steps that were fused are one.
func step_names() -> PackedStringArray:
	var names: PackedStringArray = []
	for step: RLRuntime.OnnxStep in _steps:
		names.append(step.node.describe())
	return names


## The last size of an output; 0 if neither the file nor the trial told.
func output_width(index: int) -> int:
	var dims: PackedInt64Array = outputs[index].dims
	if (dims.is_empty() or dims[-1] < 0) and index < _tried.size():
		dims = _tried[index].dims
	return maxi(dims[-1], 0) if dims else 0


func fail(what: String) -> void:
	_fail(what)


func _run(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if is_timed:
		usec.resize(_steps.size())
	var values: Array[RLRuntime.OnnxTensor] = _constants.duplicate()
	for index: int in inputs.size():
		values[_input_slots[index]] = given[index]
	for index: int in _steps.size():
		var step: RLRuntime.OnnxStep = _steps[index]
		var taken: Array[RLRuntime.OnnxTensor] = []
		for slot: int in step.inputs:
			taken.append(values[slot] if slot >= 0 else null)
		var started: int = Time.get_ticks_usec() if is_timed else 0
		var made: Array[RLRuntime.OnnxTensor] = step.compute(taken)
		if is_timed:
			usec[index] = Time.get_ticks_usec() - started
		if step.error:
			_fail("%s: %s" % [step.node.describe(), step.error])
			step.error = ""
			return []
		if made.size() < step.outputs.size():
			_fail("%s has too many outputs" % step.node.describe())
			return []
		for place: int in step.outputs.size():
			if step.outputs[place] >= 0:
				values[step.outputs[place]] = made[place]
		for slot: int in _released[index]:
			values[slot] = null
	var results: Array[RLRuntime.OnnxTensor] = []
	for slot: int in _output_slots:
		results.append(values[slot])
	return results


func _add_step(node: RLRuntime.OnnxNode, opset: int) -> void:
	if _is_another_name(node):
		_slots[node.outputs[0]] = _slot(node.inputs[0])
		return
	var step: RLRuntime.OnnxStep = RLRuntime.OnnxOperators.make(node)
	if not step:
		_fail("the operator %s cannot be run" % node.describe())
		return
	step.node = node
	step.opset = opset
	step.budget = _budget
	var is_known: bool = true
	for name: String in node.inputs:
		var slot: int = _slot(name) if name else -1
		step.inputs.append(slot)
		step.known.append(_constants[slot] if slot >= 0 else null)
		is_known = is_known and (slot < 0 or _constants[slot] != null)
	for name: String in node.outputs:
		step.outputs.append(_slot(name) if name else -1)
	step.prepare()
	var unknown: String = node.unknown_attribute()
	if not step.error and node.error:
		step.fail(node.error)
	elif not step.error and unknown:
		step.fail("its attribute '%s' cannot be run" % unknown)
	if not step.error and is_known:
		_fold(step)
	elif not step.error:
		_steps.append(step)
	if step.error:
		_fail("%s: %s" % [node.describe(), step.error])


func _is_another_name(node: RLRuntime.OnnxNode) -> bool:
	if node.op != "Identity" or node.domain not in ["", "ai.onnx"] or node.attributes:
		return false
	return node.inputs.size() == 1 and node.outputs.size() == 1 and node.inputs[0] != ""


## A step of constants only is computed now, unless that is too much work for now.
func _fold(step: RLRuntime.OnnxStep) -> void:
	var made: Array[RLRuntime.OnnxTensor] = step.compute(step.known)
	if _budget.exceeded:
		step.error = ""
		_steps.append(step)
	if step.error or _budget.exceeded:
		return
	if made.size() < step.outputs.size():
		step.fail("it has too many outputs")
		return
	for place: int in step.outputs.size():
		if step.outputs[place] >= 0:
			_constants[step.outputs[place]] = made[place]


func _plan_releases() -> void:
	var is_kept: Dictionary[int, bool] = {}
	for slot: int in _output_slots:
		is_kept[slot] = true
	_released.resize(_steps.size())
	for index: int in range(_steps.size() - 1, -1, -1):
		_released[index] = PackedInt32Array()
		for slot: int in _steps[index].inputs:
			if slot >= 0 and not is_kept.has(slot):
				is_kept[slot] = true
				_released[index].append(slot)


## Run once on zeros, so that what does not fit is said at load. Sizes nobody knows are tried as 1.
## That proves nothing where more than the first size of an input is free, nor where an input may
## itself say a size or a place.
func _try() -> bool:
	var given: Array[RLRuntime.OnnxTensor] = []
	var is_telling: bool = true
	for port: RLRuntime.OnnxPort in inputs:
		var shape: PackedInt64Array = port.filled(1)
		var may_be_sizes: bool = port.type in SIZES or port.dims.is_empty()
		if not port.has_shape or port.dims.slice(1).has(-1) or may_be_sizes:
			is_telling = false
		if (
			not RLRuntime.OnnxShape.is_allowed(shape)
			or not _budget.spend(RLRuntime.OnnxShape.count(shape))
		):
			return true
		given.append(RLRuntime.OnnxTensor.zeros(shape, port.type))
	_tried = _run(given)
	if _budget.exceeded or not is_telling:
		error = ""
	return error.is_empty()


func _fits(tensor: RLRuntime.OnnxTensor, port: RLRuntime.OnnxPort) -> bool:
	if not tensor or tensor.type != port.type:
		var got: String = tensor.describe() if tensor else "nothing"
		return _fail("the input %s got %s" % [port.describe(), got])
	if not port.has_shape:
		return true
	var is_like: bool = tensor.rank() == port.dims.size()
	for axis: int in port.dims.size():
		is_like = is_like and (port.dims[axis] < 0 or port.dims[axis] == tensor.dims[axis])
	return is_like or _fail("the input %s got %s" % [port.describe(), tensor.describe()])


func _slot(name: String) -> int:
	if not _slots.has(name):
		_slots[name] = _constants.size()
		_constants.append(null)
	return _slots[name]


func _fail(what: String) -> bool:
	if not error:
		error = what
	return false
