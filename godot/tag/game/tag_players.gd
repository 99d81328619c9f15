class_name TagPlayers
extends TagDriver
## A person and bots: after an episode an arena rests for a moment, so that one sees who won.

const REST_TICKS: int = 90

var _bots: Dictionary[String, TagBot] = {}
## The role that a person plays, or "nobody".
var _persons_role: String
## Which agent of the first arena a person plays, or -1.
var _person: int = -1
var _rested: Array[int] = []


func take_charge(of: TagGame) -> String:
	super(of)
	var options: TagOptions = game.options
	_persons_role = options.text("play") if options.text("play") else game.person_plays
	if DisplayServer.get_name() == "headless" and not options.text("play"):
		_persons_role = "nobody"
	_person = ["seeker", "hider"].find(_persons_role)
	if _person >= 0 and game.arenas[0].game.first_seeker == 1:
		_person = 1 - _person
	for role: String in ["seeker", "hider"]:
		_bots[role] = TagBot.new(TagBot.NAMES[options.text(role)], game.rules)
		game.players[role] = name_of(role)
	_rested.resize(game.arenas.size())
	return ""


func decide() -> bool:
	for index: int in game.arenas.size():
		var played: TagMatch = game.arenas[index].game
		if played.end != TagMatch.End.GOING_ON:
			_rested[index] += game.rules.decision_ticks
			if _rested[index] < REST_TICKS:
				continue
			game.begin_next(index)
		_rested[index] = 0
		played.command(action(index, 0), action(index, 1))
	return true


func may_restart() -> bool:
	return true


## Who plays a role, by the name to show.
func name_of(role: String) -> String:
	return "you" if _persons_role == role else game.options.text(role)


## What an agent's player does: the person, or the bot of its role.
func action(index: int, agent: int) -> PackedFloat32Array:
	if index == 0 and agent == _person:
		return TagInput.action()
	var played: TagMatch = game.arenas[index].game
	return _bots[TagLook.role_of(played, agent)].act(played.observations[agent])
