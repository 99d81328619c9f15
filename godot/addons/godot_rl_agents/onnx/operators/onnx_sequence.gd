extends RefCounted
## The walk of a recurrent network along a sequence, one direction at a time.

## What each direction put out, step by step.
var outputs: Array[PackedFloat32Array] = []
var last_states: PackedFloat32Array = []
var last_cells: PackedFloat32Array = []
## Of an LSTM: input, output and forget gate of each direction look at the cell too.
var peepholes: PackedFloat32Array = []
## Of a GRU that resets after the product: what is added to the state's part before.
var recurrent_bias: PackedFloat32Array = []

var _op: String
var _hidden: int
var _batch: int
var _resets_after: bool
var _state: PackedFloat32Array = []
var _cell: PackedFloat32Array = []


func _init(op: String, hidden: int, batch: int, resets_after: bool) -> void:
	_op = op
	_hidden = hidden
	_batch = batch
	_resets_after = resets_after


## Args: `gates` of all steps from the input alone, `on_state` the weights on the state.
func run(
	gates: PackedFloat32Array,
	on_state: RLRuntime.OnnxDense,
	lengths: PackedInt64Array,
	is_backward: bool,
	state: PackedFloat32Array,
	cell: PackedFloat32Array
) -> void:
	var size: int = _batch * _hidden
	var width: int = _batch * on_state.columns
	var steps: int = gates.size() / width if width > 0 else 0
	var output: PackedFloat32Array = []
	output.resize(steps * size)
	_state = state.duplicate()
	_cell = cell.duplicate()
	for turn: int in steps:
		var step: int = steps - 1 - turn if is_backward else turn
		var now: PackedFloat32Array = gates.slice(step * width, (step + 1) * width)
		var before: PackedFloat32Array = _state.duplicate()
		var from_state: PackedFloat32Array = on_state.multiply(before, _batch)
		for row: int in _batch:
			if step >= lengths[row]:
				continue
			match _op:
				"GRU":
					_gru(now, from_state, before, on_state, row)
				"RNN":
					_rnn(now, from_state, row)
				_:
					_lstm(now, from_state, row)
			for index: int in range(row * _hidden, (row + 1) * _hidden):
				output[step * size + index] = _state[index]
	outputs.append(output)
	last_states.append_array(_state)
	last_cells.append_array(_cell)


func _rnn(now: PackedFloat32Array, from_state: PackedFloat32Array, row: int) -> void:
	for index: int in range(row * _hidden, (row + 1) * _hidden):
		_state[index] = tanh(now[index] + from_state[index])


## Gates in the order z, r, h.
func _gru(
	now: PackedFloat32Array,
	from_state: PackedFloat32Array,
	before: PackedFloat32Array,
	on_state: RLRuntime.OnnxDense,
	row: int
) -> void:
	var z_at: int = 3 * row * _hidden
	var r_at: int = z_at + _hidden
	var h_at: int = r_at + _hidden
	var own: int = row * _hidden
	var added: int = outputs.size() * _hidden
	var proposed: PackedFloat32Array = []
	proposed.resize(_hidden)
	if not _resets_after:
		var reset: PackedFloat32Array = before.slice(own, own + _hidden)
		for index: int in _hidden:
			reset[index] /= 1.0 + exp(-now[r_at + index] - from_state[r_at + index])
		proposed = on_state.multiply(reset, 1).slice(2 * _hidden)
	for index: int in _hidden:
		var inner: float = proposed[index]
		if _resets_after:
			var bias: float = recurrent_bias[added + index] if recurrent_bias else 0.0
			var gate: float = now[r_at + index] + from_state[r_at + index]
			inner = (from_state[h_at + index] + bias) / (1.0 + exp(-gate))
		var z: float = 1.0 / (1.0 + exp(-now[z_at + index] - from_state[z_at + index]))
		_state[own + index] = (
			(1.0 - z) * tanh(now[h_at + index] + inner) + z * before[own + index]
		)


## Gates in the order i, o, f, c.
func _lstm(now: PackedFloat32Array, from_state: PackedFloat32Array, row: int) -> void:
	var i_at: int = 4 * row * _hidden
	var o_at: int = i_at + _hidden
	var f_at: int = o_at + _hidden
	var c_at: int = f_at + _hidden
	var peep: int = 3 * outputs.size() * _hidden
	for index: int in _hidden:
		var place: int = row * _hidden + index
		var i: float = now[i_at + index] + from_state[i_at + index]
		var o: float = now[o_at + index] + from_state[o_at + index]
		var f: float = now[f_at + index] + from_state[f_at + index]
		if peepholes:
			i += peepholes[peep + index] * _cell[place]
			f += peepholes[peep + 2 * _hidden + index] * _cell[place]
		var c: float = tanh(now[c_at + index] + from_state[c_at + index])
		_cell[place] = _cell[place] / (1.0 + exp(-f)) + c / (1.0 + exp(-i))
		if peepholes:
			o += peepholes[peep + _hidden + index] * _cell[place]
		_state[place] = tanh(_cell[place]) / (1.0 + exp(-o))
