extends RLRuntime.OnnxStep
## RNN, GRU and LSTM: forward, backward or both, over sequences of their own lengths.
##
## X is (steps, batch, input); the state (directions, batch, hidden).

const GATES: Dictionary[String, int] = {"RNN": 1, "GRU": 3, "LSTM": 4, "DynamicQuantizeLSTM": 4}
const USUAL: Dictionary[String, PackedStringArray] = {
	"RNN": ["tanh"],
	"GRU": ["sigmoid", "tanh"],
	"LSTM": ["sigmoid", "tanh", "tanh"],
	"DynamicQuantizeLSTM": ["sigmoid", "tanh", "tanh"],
}

var _hidden: int = 0
var _direction: String = "forward"
var _resets_after: bool = false
var _is_kept: bool = false
## The weights of each direction, on the input and on the state.
var _on_input: Array[RLRuntime.OnnxDense] = []
var _on_state: Array[RLRuntime.OnnxDense] = []


func prepare() -> void:
	_hidden = node.whole("hidden_size")
	_direction = node.text("direction", "forward")
	if _direction not in ["forward", "reverse", "bidirectional"]:
		fail("its direction '%s' cannot be run" % _direction)
	if node.op == "GRU":
		_resets_after = node.whole("linear_before_reset") != 0
	if node.has("layout") and node.whole("layout") != 0:
		fail("its layout 1 cannot be run")
	if node.has("input_forget") and node.whole("input_forget") != 0:
		fail("its input_forget cannot be run")
	if node.has("activations"):
		_check_activations(node.attributes["activations"])
	_is_kept = known.size() > 2 and known[1] and known[2]
	_is_kept = _is_kept and (known.size() < 4 or inputs[3] < 0 or known[3] != null)


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 3, 12) or not is_floating(given[0]):
		return []
	var x: RLRuntime.OnnxTensor = given[0]
	var directions: int = 2 if _direction == "bidirectional" else 1
	if x.rank() != 3 or not _fit(given, directions):
		return fail("%s cannot be run over" % x.describe())
	var steps: int = x.dims[0]
	var batch: int = x.dims[1]
	if not may_make([steps, directions, batch, _hidden], 8 + (x.dims[2] + _hidden) / 4):
		return []
	if _on_input.is_empty() or not _is_kept:
		_pack(given, directions)
	if error:
		return []
	var lengths: PackedInt64Array = _lengths(optional(given, 4), steps, batch)
	var state: PackedFloat32Array = _start(optional(given, 5), directions, batch)
	var cell: PackedFloat32Array = _start(optional(given, 6), directions, batch)
	if error:
		return []
	var run: RLRuntime.OnnxSequence = RLRuntime.OnnxSequence.new(
		node.op, _hidden, batch, _resets_after
	)
	if optional(given, 7):
		run.peepholes = given[7].floats
	run.recurrent_bias = _recurrent_bias(optional(given, 3), directions)
	for direction: int in directions:
		var is_backward: bool = direction == 1 or _direction == "reverse"
		run.run(
			_on_input[direction].multiply(x.floats, steps * batch),
			_on_state[direction],
			lengths,
			is_backward,
			state.slice(direction * batch * _hidden, (direction + 1) * batch * _hidden),
			cell.slice(direction * batch * _hidden, (direction + 1) * batch * _hidden)
		)
	var ends: PackedInt64Array = [directions, batch, _hidden]
	var made: Array[RLRuntime.OnnxTensor] = [
		RLRuntime.OnnxTensor.of_floats(
			_interleaved(run.outputs, steps, batch), [steps, directions, batch, _hidden]
		),
		RLRuntime.OnnxTensor.of_floats(run.last_states, ends),
		RLRuntime.OnnxTensor.of_floats(run.last_cells, ends),
	]
	return made


func _check_activations(wanted: Variant) -> void:
	if not wanted is PackedStringArray:
		fail("its activations cannot be run")
		return
	var usual: PackedStringArray = USUAL[node.op]
	var names: PackedStringArray = wanted
	for index: int in names.size():
		if names[index].to_lower() != usual[index % usual.size()]:
			fail("its activation '%s' cannot be run" % names[index])


func _fit(given: Array[RLRuntime.OnnxTensor], directions: int) -> bool:
	var gates: int = GATES[node.op] * _hidden
	if _hidden < 1 or _hidden > 65536:
		return false
	var fitting: Dictionary[int, PackedInt64Array] = {
		1: PackedInt64Array([directions, gates, given[0].dims[2]]),
		2: PackedInt64Array([directions, gates, _hidden]),
		3: PackedInt64Array([directions, 2 * gates]),
		4: PackedInt64Array([given[0].dims[1]]),
		5: PackedInt64Array([directions, given[0].dims[1], _hidden]),
		6: PackedInt64Array([directions, given[0].dims[1], _hidden]),
		7: PackedInt64Array([directions, 3 * _hidden]),
	}
	for index: int in range(1, mini(given.size(), 8)):
		if not given[index]:
			continue
		if given[index].dims != fitting[index] or given[index].is_float() != (index != 4):
			fail("input %d is %s" % [index, given[index].describe()])
			return false
	return true


func _pack(given: Array[RLRuntime.OnnxTensor], directions: int) -> void:
	_on_input = []
	_on_state = []
	var gates: int = GATES[node.op] * _hidden
	var width: int = given[0].dims[2]
	if not budget.spend(given[1].count() + given[2].count()):
		fail("it needs more work than is allowed")
		return
	for direction: int in directions:
		var from: int = direction * gates
		var on_input: PackedFloat32Array = given[1].floats.slice(
			from * width, (from + gates) * width
		)
		var on_state: PackedFloat32Array = given[2].floats.slice(
			from * _hidden, (from + gates) * _hidden
		)
		var bias: PackedFloat32Array = _bias(optional(given, 3), direction, gates)
		_on_input.append(RLRuntime.OnnxDense.new(on_input, width, gates, true, bias))
		_on_state.append(RLRuntime.OnnxDense.new(on_state, _hidden, gates, true))


## What is added to the gates in any case. The last gate of a GRU that resets after the product
## gets the bias of its state there.
func _bias(biases: RLRuntime.OnnxTensor, direction: int, gates: int) -> PackedFloat32Array:
	var sum: PackedFloat32Array = []
	sum.resize(gates)
	if not biases:
		return sum
	for index: int in gates:
		var from: int = 2 * direction * gates + index
		sum[index] = biases.floats[from]
		if not (_resets_after and index >= 2 * _hidden):
			sum[index] += biases.floats[from + gates]
	return sum


func _recurrent_bias(biases: RLRuntime.OnnxTensor, directions: int) -> PackedFloat32Array:
	var found: PackedFloat32Array = []
	if biases and _resets_after:
		for direction: int in directions:
			var end: int = 6 * _hidden * (direction + 1)
			found.append_array(biases.floats.slice(end - _hidden, end))
	return found


func _lengths(wanted: RLRuntime.OnnxTensor, steps: int, batch: int) -> PackedInt64Array:
	var lengths: PackedInt64Array = []
	lengths.resize(batch)
	lengths.fill(steps)
	if not wanted:
		return lengths
	for length: int in wanted.ints:
		if length < 0 or length > steps:
			fail("a sequence of %d steps in %d" % [length, steps])
	return wanted.ints


func _start(given: RLRuntime.OnnxTensor, directions: int, batch: int) -> PackedFloat32Array:
	if given:
		return given.floats
	var zeros: PackedFloat32Array = []
	zeros.resize(directions * batch * _hidden)
	return zeros


## Outputs of each direction, step by step, into step by step of each direction.
func _interleaved(outputs: Array[PackedFloat32Array], steps: int, batch: int) -> PackedFloat32Array:
	if outputs.size() == 1:
		return outputs[0]
	var size: int = batch * _hidden
	var made: PackedFloat32Array = []
	for step: int in steps:
		for output: PackedFloat32Array in outputs:
			made.append_array(output.slice(step * size, (step + 1) * size))
	return made
