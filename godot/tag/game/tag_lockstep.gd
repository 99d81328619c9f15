class_name TagLockstep
extends TagDriver
## Matches played from Python: each decision waits for its actions and sends back the results.

const ACTION_FLOATS: int = 6

var channel: TagChannel = TagChannel.new()

var _matches: Array[TagMatch] = []
var _restart: bool = false
var _episodes: Array[int] = []


## Connect and send a hello; returns the problem, or "".
func start(played: TagGame) -> String:
	super(played)
	for arena: TagArena in game.arenas:
		_matches.append(arena.game)
		_episodes.append(0)
	if not channel.open(game.options.number("channel")):
		return channel.closed
	var rules: TagRules = game.rules
	var hello: Dictionary = {
		"protocol": 2,
		"godot": Engine.get_version_info().string,
		"arenas": _matches.size(),
		"observation_version": rules.observation_version,
		"observation_size": rules.observation_size,
		"terms": TagRules.reward_terms().keys(),
		"rules": rules.rule_set,
		"rewards": rules.reward_profile,
		"seed": _matches[0].seed_value,
	}
	channel.send(JSON.stringify(hello).to_utf8_buffer())
	return ""


func decide() -> bool:
	if _take_actions():
		return true
	game.quit()
	return false


## Send the results of the decision.
func conclude() -> void:
	channel.send(_answer())


## Wait for the actions of the next decision and apply them; false when Python has closed.
func _take_actions() -> bool:
	while true:
		var frame: PackedByteArray = channel.receive()
		if frame.is_empty():
			return false
		match frame[0]:
			0x52:  # R
				if frame.size() != 9:
					channel.closed = "%d bytes to begin with" % frame.size()
					return false
				_begin(frame.decode_u32(1), frame.decode_u32(5))
				channel.send(_answer())
			0x53:  # S
				if frame.size() != 2 + 4 * ACTION_FLOATS * _matches.size():
					channel.closed = "%d bytes of actions" % frame.size()
					return false
				_restart = frame[1] != 0
				_command(frame.slice(2).to_float32_array())
				return true
			0x56:  # V
				var problem: String = _vary(frame.slice(1).get_string_from_utf8())
				channel.send(("V" + problem).to_utf8_buffer())
			0x42:  # B
				channel.send(_ask_bot(frame))
			_:
				channel.closed = "a frame of type %d" % frame[0]
				return false
	return false


func _begin(episode: int, first_arena: int) -> void:
	for index: int in _matches.size():
		_episodes[index] = episode
		_matches[index].number = first_arena + index
		_matches[index].begin(episode)


## Let every arena play by rules of its own from its next episode on; returns the problem, or "".
func _vary(text: String) -> String:
	var each: Variant = JSON.parse_string(text)
	if not each is Array or each.size() != _matches.size():
		return "rules for another number of arenas"
	for index: int in _matches.size():
		var rules: TagRules = TagRules.of(each[index], "rules of arena %d" % index)
		if rules.error:
			return rules.error
		_matches[index].play_by(rules)
	return ""


func _command(actions: PackedFloat32Array) -> void:
	for index: int in _matches.size():
		var base: int = index * ACTION_FLOATS
		_matches[index].command(
			actions.slice(base, base + 3), actions.slice(base + 3, base + ACTION_FLOATS)
		)


## Actions of a bot, to compare it with Python's.
func _ask_bot(frame: PackedByteArray) -> PackedByteArray:
	var rules: TagRules = _matches[0].rules
	var actions: PackedFloat32Array = []
	if frame.size() > 2 and TagBot.Kind.values().has(int(frame[1])):
		var bot: TagBot = TagBot.new(frame[1] as TagBot.Kind, rules)
		var rows: PackedFloat32Array = frame.slice(2).to_float32_array()
		for first: int in range(0, rows.size(), rules.observation_size):
			actions.append_array(bot.act(rows.slice(first, first + rules.observation_size)))
	return actions.to_byte_array()


func _answer() -> PackedByteArray:
	var floats: PackedFloat32Array = []
	var rewards: PackedFloat32Array = []
	var terms: PackedFloat32Array = []
	var flags: Array[PackedByteArray] = [[], [], []]
	var ticks: PackedInt32Array = []
	var layouts: PackedInt32Array = []
	var distances: PackedFloat64Array = []
	var states: PackedFloat64Array = []
	var last_sights: PackedFloat32Array = []
	for index: int in _matches.size():
		var game: TagMatch = _matches[index]
		for i: int in 2:
			rewards.append(game.rewards[i])
			terms.append_array(PackedFloat32Array(Array(game.terms[i])))
		flags[0].append(game.end)
		flags[1].append(game.winner & 0xFF)
		ticks.append(game.tick)
		distances.append(game.agents[0].distance_to(game.agents[1]))
		if _restart and game.end != TagMatch.End.GOING_ON:
			last_sights.append_array(game.observations[0])
			last_sights.append_array(game.observations[1])
			_episodes[index] += 1
			game.begin(_episodes[index])
		flags[2].append(game.seeker)
		layouts.append(game.layout_index)
		for i: int in 2:
			floats.append_array(game.observations[i])
			states.append_array(game.agents[i].numbers())
	var out: PackedByteArray = floats.to_byte_array()
	out.append_array(rewards.to_byte_array())
	out.append_array(terms.to_byte_array())
	for part: PackedByteArray in flags:
		out.append_array(part)
	out.append_array(ticks.to_byte_array())
	out.append_array(PackedInt32Array(_episodes).to_byte_array())
	out.append_array(layouts.to_byte_array())
	out.append_array(distances.to_byte_array())
	out.append_array(states.to_byte_array())
	out.append_array(last_sights.to_byte_array())
	return out
