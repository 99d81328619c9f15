class_name RLBinaryCodec
extends RLCodec
## The binary frames of docs/ws_protocol.md: a decision of all arenas, and its actions.

const HEADER_SIZE: int = 8
const DECISION: int = 0x44
const ACTIONS: int = 0x41
const WITH_RESULTS: int = 1

var _seq: int = 0
var _rewards: PackedFloat32Array = []
var _terms: PackedFloat64Array = []
var _distances: PackedFloat64Array = []
var _ticks: PackedInt32Array = []
var _ends: PackedByteArray = []
var _winners: PackedByteArray = []
var _last: PackedFloat32Array = []


func _init(matches: Array[TagMatch], controlled: Array[bool]) -> void:
	super(matches, controlled)
	_rewards.resize(2 * matches.size())
	_distances.resize(matches.size())
	_ticks.resize(matches.size())
	_ends.resize(matches.size())
	_winners.resize(matches.size())


func record_results() -> void:
	_terms.clear()
	_last.clear()
	for index: int in _matches.size():
		var game: TagMatch = _matches[index]
		_rewards[2 * index] = game.rewards[_first]
		_rewards[2 * index + 1] = game.rewards[_second]
		_terms.append_array(game.terms[_first])
		_terms.append_array(game.terms[_second])
		_distances[index] = game.agents[0].distance_to(game.agents[1])
		_ticks[index] = game.tick
		_ends[index] = game.end
		_winners[index] = 0xFF if game.winner == TagMatch.NOBODY else game.winner ^ _first
		if game.end != TagMatch.End.GOING_ON:
			_last.append_array(game.observations[_first])
			_last.append_array(game.observations[_second])


func encode_request(seq: int, with_results: bool) -> Array:
	_seq = seq
	var frame: PackedByteArray = []
	frame.resize(HEADER_SIZE)
	frame[0] = DECISION
	frame[1] = WITH_RESULTS if with_results else 0
	frame.encode_u16(2, _matches.size())
	frame.encode_u32(4, seq)
	if with_results:
		frame.append_array(_rewards.to_byte_array())
		frame.append_array(_terms.to_byte_array())
		frame.append_array(_distances.to_byte_array())
		frame.append_array(_ticks.to_byte_array())
		frame.append_array(_ends)
		frame.append_array(_winners)
		frame.append_array(_last.to_byte_array())
	var seekers: PackedByteArray = []
	var seen: PackedFloat32Array = []
	for game: TagMatch in _matches:
		seekers.append(game.seeker ^ _first)
		seen.append_array(game.observations[_first])
		seen.append_array(game.observations[_second])
	frame.append_array(seekers)
	frame.append_array(seen.to_byte_array())
	return [frame]


## Text is ignored: a server that objects closes the connection.
func decode_reply(message: Variant) -> bool:
	if not message is PackedByteArray:
		return false
	var frame: PackedByteArray = message
	var arenas: int = _matches.size()
	var expected: int = HEADER_SIZE + 4 * 2 * ACTION_SIZE * arenas
	if frame.size() != expected:
		error = "%d bytes of actions instead of %d" % [frame.size(), expected]
	elif frame[0] != ACTIONS or frame.decode_u16(2) != arenas:
		error = "a frame of kind %d for %d arenas" % [frame[0], frame.decode_u16(2)]
	elif frame.decode_u32(4) != _seq:
		error = "actions for decision %d instead of %d" % [frame.decode_u32(4), _seq]
	if error:
		return false
	_actions = frame.slice(HEADER_SIZE).to_float32_array()
	return true
