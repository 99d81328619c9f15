extends TagTest
## JSON messages for older servers: what is asked, what is told, and how the answer is read.

var _rules: TagRules = TagRules.read()
var _matches: Array[TagMatch] = []


func test_all_agents_ask_at_once() -> void:
	_begin(2)
	var codec: RLJsonCodec = RLJsonCodec.new(_matches, [true, true])
	var asked: Dictionary = _only(codec.encode_request(9, false))
	check_equal([asked.type, asked.seq], ["act_batch", 9.0], "the question")
	check_equal(asked.obs.keys(), ["Agent1", "Agent2", "Agent3", "Agent4"], "who asks")
	var seen: PackedFloat32Array = asked.obs.Agent4
	check_equal(seen, _matches[1].observations[1], "what the last one sees")
	var actions: Dictionary = {}
	for number: int in 4:
		actions["Agent%d" % (number + 1)] = [0.1 * number, -0.5, 1]
	var answer: Dictionary = {"type": "action_batch", "actions": actions, "seq": 9, "info": {}}
	check(codec.decode_reply(JSON.stringify(answer)), "it is complete: " + codec.error)
	check_equal(codec.action(1, 0), act(0.2, -0.5, 1.0), "an action")


func test_an_older_server_repeats_no_seq() -> void:
	_begin(1)
	var codec: RLJsonCodec = RLJsonCodec.new(_matches, [true, false])
	var asked: Dictionary = _only(codec.encode_request(3, false))
	check_equal(asked.obs.keys(), ["Agent1"], "who asks")
	check(not codec.decode_reply('{"type":"echo","recv":{}}'), "an echo is no answer")
	check_equal(codec.error, "", "and no mistake")
	check(codec.decode_reply('{"type":"action_batch","actions":{"Agent1":[1,0,0]}}'), codec.error)


func test_a_transition_tells_everything() -> void:
	_begin(1)
	var codec: RLJsonCodec = RLJsonCodec.new(_matches, [true, true])
	var game: TagMatch = _matches[0]
	var before: PackedFloat32Array = game.observations[1].duplicate()
	var distance: float = game.agents[0].distance_to(game.agents[1])
	_answer_and_play(codec, 0)
	var messages: Array = codec.encode_request(1, true)
	check_equal(messages.size(), 2, "messages")
	var told: Dictionary = JSON.parse_string(messages[0])
	check_equal([told.type, told.transitions.size()], ["transition_batch", 2], "what is told")
	var second: Dictionary = told.transitions[1]
	check_equal(PackedFloat32Array(second.obs), before, "obs")
	check_equal(PackedFloat32Array(second.next_obs), game.observations[1], "next_obs")
	check_equal(second.action, [0.0, 1.0, 0.0], "action")
	check_near(second.reward, game.rewards[1], 1e-12, "reward")
	check_equal([second.done, second.seq], [false, 0.0], "done and seq")
	var now: float = game.agents[0].distance_to(game.agents[1])
	var info: Dictionary = second.info
	check_equal([info.agent, info.role], ["Agent2", "hider"], "who")
	check_near(info.distance_to_other, now, 1e-12, "distance")
	check_near(info.progress, now - distance, 1e-12, "progress")
	check_equal([info.time_elapsed, info.steps_in_episode], [0.05, 1.0], "when")
	check_equal([info.episode, info.has("winner")], [0.0, false], "no end yet")


func test_the_last_transition_tells_how_it_ended() -> void:
	_begin(2)
	var codec: RLJsonCodec = RLJsonCodec.new(_matches, [true, true])
	_matches[0].agents[1].x = _matches[0].agents[0].x
	_matches[0].agents[1].z = _matches[0].agents[0].z
	_matches[1].tick = _rules.limit_ticks - 1
	_answer_and_play(codec, 0)
	_matches[0].begin(1)
	var told: Dictionary = JSON.parse_string(codec.encode_request(1, true)[0])
	var tagged: Dictionary = told.transitions[0].info
	check(told.transitions[0].done, "done")
	check_equal([tagged.terminal_reason, tagged.winner], ["tag", "Agent1"], "the tag")
	check_equal([tagged.tag_attacker, tagged.tag_target], ["Agent1", "Agent2"], "of whom by whom")
	var late: Dictionary = told.transitions[3].info
	check_equal([late.terminal_reason, late.winner], ["timeout", "Agent4"], "the timeout")
	check(not late.has("tag_attacker"), "nobody was tagged")


func test_the_oldest_servers_are_asked_one_by_one() -> void:
	_begin(1)
	var codec: RLJsonCodec = RLJsonCodec.new(_matches, [true, true], true)
	var messages: Array = codec.encode_request(0, false)
	check_equal(messages.size(), 2, "questions")
	var asked: Dictionary = JSON.parse_string(messages[0])
	check_equal(asked.keys(), ["type", "obs"], "a question's fields")
	check_equal(asked.type, "act", "its type")
	check(not codec.decode_reply('{"type":"action","action":[1,0,0],"info":{}}'), "half an answer")
	check(codec.decode_reply('{"type":"action","action":[0,1,0.75],"info":{}}'), "an answer")
	check_equal(codec.action(0, 1), act(0.0, 1.0, 0.75), "the second's action")
	_play()
	codec.record_results()
	messages = codec.encode_request(1, true)
	check_equal(messages.size(), 4, "two are told, two ask")
	var told: Dictionary = JSON.parse_string(messages[0])
	check_equal([told.type, told.info.agent], ["transition", "Agent1"], "what is told")
	check(not told.has("seq"), "nothing newer is said")


func test_a_wrong_answer_is_an_error() -> void:
	_begin(1)
	var cases: Dictionary[String, String] = {
		"no JSON": "oops",
		"instead of 4": '{"type":"action_batch","actions":{},"seq":3}',
		"no actions": '{"type":"action_batch","seq":4}',
		"Agent2": '{"type":"action_batch","actions":{"Agent1":[0,0,0],"Agent2":[0,"x",0]}}',
		"Agent1": '{"type":"action_batch","actions":{"Agent1":[0,0],"Agent2":[0,0,0]}}',
		"out of paper": '{"type":"error","error":"out of paper"}',
	}
	for told: String in cases:
		var codec: RLJsonCodec = RLJsonCodec.new(_matches, [true, true])
		codec.encode_request(4, false)
		check(not codec.decode_reply(cases[told]), told)
		check(codec.error.contains(told), "'%s' does not say %s" % [codec.error, told])


func _begin(arenas: int) -> void:
	var layouts: Array[TagLayout] = [TagLayout.read("empty", _rules)]
	for number: int in arenas:
		var game: TagMatch = TagMatch.new(_rules, layouts, 1, number)
		game.begin(0)
		_matches.append(game)


func _answer_and_play(codec: RLJsonCodec, seq: int) -> void:
	codec.encode_request(seq, false)
	var actions: Dictionary = {}
	for number: int in 2 * _matches.size():
		actions["Agent%d" % (number + 1)] = [1 - number % 2, number % 2, 0]
	check(
		codec.decode_reply(JSON.stringify({"type": "action_batch", "actions": actions})),
		codec.error
	)
	_play()
	codec.record_results()


func _play() -> void:
	for game: TagMatch in _matches:
		game.decide(act(1.0, 0.0), act(0.0, 1.0))


func _only(messages: Array) -> Dictionary:
	check_equal(messages.size(), 1, "messages")
	return JSON.parse_string(messages[0])
