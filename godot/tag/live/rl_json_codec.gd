class_name RLJsonCodec
extends RLCodec
## The JSON messages of docs/ws_protocol.md, for servers that know nothing else.
##
## `act_batch` and `transition_batch`, or one `act` and `transition` per agent for the oldest.

## Whether to send one message per agent, the oldest form.
var _is_single: bool = false
var _seq: int = 0
## The agents that the server plays, in the order of the requests.
var _asked: Array[Dictionary] = []
var _answered: int = 0
var _transitions: Array[Dictionary] = []


func _init(matches: Array[TagMatch], controlled: Array[bool], single: bool = false) -> void:
	super(matches, controlled)
	_is_single = single
	_actions.resize(2 * ACTION_SIZE * matches.size())


## An agent's name: Agent1 and Agent2 in the first arena, and so on.
static func name_of(arena: int, agent: int) -> String:
	return "Agent%d" % (2 * arena + agent + 1)


func record_results() -> void:
	_transitions.clear()
	for asked: Dictionary in _asked:
		var game: TagMatch = _matches[asked.arena]
		var transition: Dictionary = {
			"obs": asked.obs,
			"action": action(asked.arena, asked.agent),
			"reward": game.rewards[asked.agent],
			"next_obs": game.observations[asked.agent].duplicate(),
			"done": game.end != TagMatch.End.GOING_ON,
			"info": _info(asked, game),
		}
		if not _is_single:
			transition.seq = _seq
		_transitions.append(transition)


func encode_request(seq: int, with_results: bool) -> Array:
	var messages: Array = []
	if with_results:
		messages.append_array(_result_messages())
	_seq = seq
	_answered = 0
	_asked.clear()
	var observations: Dictionary = {}
	for arena: int in _matches.size():
		for agent: int in 2:
			if _controlled[agent]:
				_asked.append(_remember(arena, agent))
				observations[name_of(arena, agent)] = _asked[-1].obs
	if _is_single:
		for asked: Dictionary in _asked:
			messages.append(_text({"type": "act", "obs": asked.obs}))
	else:
		messages.append(_text({"type": "act_batch", "obs": observations, "seq": seq}))
	return messages


func decode_reply(message: Variant) -> bool:
	var json: JSON = JSON.new()
	if not message is String or json.parse(message) != OK or not json.data is Dictionary:
		error = "something that is no JSON object"
		return false
	var reply: Dictionary = json.data
	match reply.get("type"):
		"action":
			if _answered < _asked.size():
				_take(_asked[_answered], reply.get("action"))
				_answered += 1
			return not error and _answered == _asked.size()
		"action_batch":
			return _read_batch(reply)
		"error":
			error = "the server complains: %s" % reply.get("error")
	return false


func _read_batch(reply: Dictionary) -> bool:
	if int(reply.get("seq", _seq)) != _seq:
		error = "actions for decision %s instead of %d" % [reply.seq, _seq]
	elif not reply.get("actions") is Dictionary:
		error = "no actions"
	else:
		for asked: Dictionary in _asked:
			_take(asked, reply.actions.get(name_of(asked.arena, asked.agent)))
	return not error


func _take(asked: Dictionary, wanted: Variant) -> void:
	if not TagLayout.is_numbers(wanted, ACTION_SIZE):
		var agent: String = name_of(asked.arena, asked.agent)
		error = "no action for %s: %s" % [agent, str(wanted).left(100)]
		return
	var at: int = ACTION_SIZE * (2 * asked.arena + (asked.agent ^ _first))
	for part: int in ACTION_SIZE:
		_actions[at + part] = wanted[part]


func _remember(arena: int, agent: int) -> Dictionary:
	var game: TagMatch = _matches[arena]
	return {
		"arena": arena,
		"agent": agent,
		"obs": game.observations[agent].duplicate(),
		"role": game.role_of(agent),
		"distance": game.agents[0].distance_to(game.agents[1]),
	}


func _result_messages() -> Array:
	if not _is_single:
		return [_text({"type": "transition_batch", "transitions": _transitions})]
	var messages: Array = []
	for transition: Dictionary in _transitions:
		messages.append(_text({"type": "transition"}.merged(transition)))
	return messages


## `progress` is the change of distance in metres, positive if it suits the agent's role.
func _info(asked: Dictionary, game: TagMatch) -> Dictionary:
	var rules: TagRules = game.rules
	var distance: float = game.agents[0].distance_to(game.agents[1])
	var nearer: float = asked.distance - distance
	var info: Dictionary = {
		"agent": name_of(asked.arena, asked.agent),
		"role": asked.role,
		"distance_to_other": distance,
		"progress": nearer if asked.role == "seeker" else -nearer,
		"time_elapsed": game.tick * rules.tick_sec,
		"steps_in_episode": ceili(float(game.tick) / rules.decision_ticks),
		"episode": game.episode,
	}
	if game.end == TagMatch.End.GOING_ON:
		return info
	info.terminal_reason = TagTrajectory.REASONS[game.end]
	info.winner = null
	if game.winner != TagMatch.NOBODY:
		info.winner = name_of(asked.arena, game.winner)
	if game.end == TagMatch.End.TAGGED:
		info.tag_attacker = info.winner
		info.tag_target = name_of(asked.arena, 1 - game.winner)
	return info


## JSON with every bit of the numbers.
func _text(message: Dictionary) -> String:
	return JSON.stringify(message, "", false, true)
