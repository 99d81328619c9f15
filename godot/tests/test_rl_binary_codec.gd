extends TagTest
## Binary frames: every byte where docs/ws_protocol.md says, whoever began as the seeker.

const BOTH: Array[bool] = [true, true]
const ARENAS: int = 3

var _rules: TagRules = TagRules.read()
var _matches: Array[TagMatch] = []


func test_a_first_decision_holds_what_is_seen() -> void:
	_play_two(0)
	var frame: PackedByteArray = RLBinaryCodec.new(_matches, BOTH).encode_request(7, false)[0]
	var size: int = _rules.observation_size
	check_equal(frame.size(), 8 + ARENAS + ARENAS * 2 * size * 4, "bytes")
	check_equal(frame.slice(0, 8).hex_encode(), "4400030007000000", "the header")
	var stream: StreamPeerBuffer = _stream(frame, 8)
	for _arena: int in ARENAS:
		check_equal(stream.get_8(), 0, "who is it")
	for game: TagMatch in _matches:
		for agent: int in 2:
			check_equal(_floats(stream, size), game.observations[agent], "what is seen")


func test_a_later_one_holds_what_came_of_the_decision_before() -> void:
	_play_two(0)
	_check_results(0xFFFFFFFF)


func test_who_began_as_the_seeker_comes_first() -> void:
	_play_two(1)
	_check_results(3)


func test_actions_are_handed_out_by_agent() -> void:
	for first: int in 2:
		_play_two(first)
		var codec: RLBinaryCodec = RLBinaryCodec.new(_matches, BOTH)
		codec.encode_request(258, false)
		check(codec.decode_reply(_answer(258)), "it is complete: " + codec.error)
		for arena: int in ARENAS:
			for agent: int in 2:
				var base: float = 6.0 * arena + (0.0 if agent == first else 3.0)
				var expected: PackedFloat32Array = [base, base + 1.0, base + 2.0]
				check_equal(codec.action(arena, agent), expected, "agent %d" % agent)


func test_an_answer_that_does_not_fit_is_an_error() -> void:
	_play_two(0)
	var cases: Dictionary[String, PackedByteArray] = {
		"81 bytes": _answer(5) + PackedByteArray([0]),
		"decision 6": _answer(6),
		"kind 68": PackedByteArray([0x44]) + _answer(5).slice(1),
		"4 arenas": PackedByteArray([0x41, 0, 4, 0]) + _answer(5).slice(4),
	}
	for told: String in cases:
		var codec: RLBinaryCodec = RLBinaryCodec.new(_matches, BOTH)
		codec.encode_request(5, false)
		check(not codec.decode_reply(cases[told]), told)
		check(codec.error.contains(told), "'%s' does not say %s" % [codec.error, told])
	var patient: RLBinaryCodec = RLBinaryCodec.new(_matches, BOTH)
	patient.encode_request(5, false)
	check(not patient.decode_reply('{"type":"action_batch"}'), "text is no answer")
	check_equal(patient.error, "", "text is passed over")


## Three matches after two decisions: the second was tagged, the third is out of time.
func _play_two(first_seeker: int) -> void:
	_matches.clear()
	var layouts: Array[TagLayout] = [TagLayout.read("colonnade", _rules)]
	for number: int in ARENAS:
		var game: TagMatch = TagMatch.new(_rules, layouts, 4, number, first_seeker)
		game.begin(0)
		game.decide(act(0.5, 0.25), act(-1.0, 0.0, 1.0))
		_matches.append(game)


func _end_two() -> void:
	var tagged: TagMatch = _matches[1]
	tagged.agents[1].x = tagged.agents[0].x
	tagged.agents[1].z = tagged.agents[0].z
	_matches[2].tick = _rules.limit_ticks - 1
	for game: TagMatch in _matches:
		game.decide(act(1.0, 0.0), act(0.0, 1.0))


func _check_results(seq: int) -> void:
	_end_two()
	var first: int = _matches[0].first_seeker
	var order: Array[int] = [first, 1 - first]
	var size: int = _rules.observation_size
	var codec: RLBinaryCodec = RLBinaryCodec.new(_matches, BOTH)
	codec.record_results()
	var rewards: PackedFloat32Array = []
	var terms: PackedFloat64Array = []
	var last: PackedFloat32Array = []
	for game: TagMatch in _matches:
		for agent: int in order:
			rewards.append(game.rewards[agent])
			terms.append_array(game.terms[agent])
			if game.end != TagMatch.End.GOING_ON:
				last.append_array(game.observations[agent])
	var distances: PackedFloat64Array = []
	var ticks: PackedInt32Array = []
	for game: TagMatch in _matches:
		distances.append(game.agents[0].distance_to(game.agents[1]))
		ticks.append(game.tick)
	_matches[1].begin(1)
	_matches[2].begin(1)
	var frame: PackedByteArray = codec.encode_request(seq, true)[0]
	var per_arena: int = 8 + 16 * TagRules.reward_terms().size() + 8 + 4 + 1 + 1 + 1 + 2 * size * 4
	check_equal(frame.size(), 8 + ARENAS * per_arena + 2 * 2 * size * 4, "bytes")
	check_equal([frame[0], frame[1], frame.decode_u32(4)], [0x44, 1, seq], "the header")
	var stream: StreamPeerBuffer = _stream(frame, 8)
	check_equal(_floats(stream, 2 * ARENAS), rewards, "rewards")
	for term: float in terms:
		check_equal(stream.get_double(), term, "a term")
	for distance: float in distances:
		check_equal(stream.get_double(), distance, "a distance")
	for tick: int in ticks:
		check_equal(stream.get_32(), tick, "a tick")
	check_equal([stream.get_8(), stream.get_8(), stream.get_8()], [0, 1, 2], "ends")
	check_equal([stream.get_8(), stream.get_8(), stream.get_8()], [-1, 0, 1], "winners")
	check_equal(_floats(stream, 4 * size), last, "what was seen last")
	check_equal([stream.get_8(), stream.get_8(), stream.get_8()], [0, 0, 0], "who is it")
	for game: TagMatch in _matches:
		for agent: int in order:
			check_equal(_floats(stream, size), game.observations[agent], "what is seen")


func _answer(seq: int) -> PackedByteArray:
	var frame: PackedByteArray = [0x41, 0, ARENAS, 0, 0, 0, 0, 0]
	frame.encode_u32(4, seq)
	var actions: PackedFloat32Array = []
	for number: int in 6 * ARENAS:
		actions.append(number)
	return frame + actions.to_byte_array()


func _stream(frame: PackedByteArray, from: int) -> StreamPeerBuffer:
	var stream: StreamPeerBuffer = StreamPeerBuffer.new()
	stream.data_array = frame
	stream.seek(from)
	return stream


func _floats(stream: StreamPeerBuffer, count: int) -> PackedFloat32Array:
	var floats: PackedFloat32Array = []
	for _number: int in count:
		floats.append(stream.get_float())
	return floats
