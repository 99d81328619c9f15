class_name TagPair
extends RefCounted
## The players of both roles, for any number of matches at once.
##
## A player acts for the agent that has its role now.

const ROLES: PackedStringArray = ["seeker", "hider"]

## What is wrong with them, or "".
var error: String = ""

var _players: Dictionary[String, TagPlayer] = {}


## The players that the options name: a bot, a level, or an `.onnx` file.
func _init(options: TagOptions, rules: TagRules) -> void:
	for role: String in ROLES:
		var spec: String = options.text(role)
		var player: TagPlayer = TagPlayer.new()
		if TagBot.NAMES.has(spec):
			player = TagBot.new(TagBot.NAMES[spec], rules)
		elif spec.ends_with(".onnx"):
			player = TagPolicy.new(options.path(role), role, rules)
		else:
			player = _trained(spec, role, rules)
		_players[role] = player
		if player.error and not error:
			error = "--%s: %s" % [role, player.error]


## The action of a role's player.
func act(role: String, obs: PackedFloat32Array) -> PackedFloat32Array:
	return _players[role].act(obs)


## The actions of all agents, two for every match.
func act_all(matches: Array[TagMatch]) -> Array[PackedFloat32Array]:
	var actions: Array[PackedFloat32Array] = []
	actions.resize(2 * matches.size())
	for role: String in ROLES:
		var seen: Array[PackedFloat32Array] = []
		var places: PackedInt32Array = []
		for index: int in matches.size():
			var played: TagMatch = matches[index]
			var agent: int = played.seeker if role == "seeker" else 1 - played.seeker
			seen.append(played.observations[agent])
			places.append(2 * index + agent)
		var made: Array[PackedFloat32Array] = _players[role].act_all(seen)
		for index: int in made.size():
			actions[places[index]] = made[index]
	return actions


func _trained(level: String, role: String, rules: TagRules) -> TagPlayer:
	var levels: TagLevels = TagLevels.read()
	if level in levels.names:
		return TagPolicy.new(levels.path_of(level, role), role, rules)
	var nobody: TagPlayer = TagPlayer.new()
	nobody.error = (
		"no player '%s'; there are %s, and .onnx files"
		% [level, ", ".join(TagBot.NAMES.keys() + Array(levels.names))]
	)
	return nobody
