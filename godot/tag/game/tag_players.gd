class_name TagPlayers
extends TagDriver
## A person, bots and policies; after an episode an arena pauses to show who won.

const REST_TICKS: int = 90

var _pair: TagPair
## The role that a person plays, or "nobody".
var _persons_role: String
## Which agent of the first arena a person plays, or -1.
var _person: int = -1
var _rested: Array[int] = []


func start(played: TagGame) -> String:
	super(played)
	var options: TagOptions = game.options
	_persons_role = options.text("play") if options.text("play") else game.person_plays
	if DisplayServer.get_name() == "headless" and not options.text("play"):
		_persons_role = "nobody"
	_person = ["seeker", "hider"].find(_persons_role)
	if _person >= 0 and game.arenas[0].game.first_seeker == 1:
		_person = 1 - _person
	_pair = TagPair.new(options, game.rules)
	for role: String in TagPair.ROLES:
		game.players[role] = name_of(role)
	_rested.resize(game.arenas.size())
	return _pair.error


func decide() -> bool:
	var playing: Array[TagMatch] = []
	for index: int in game.arenas.size():
		var played: TagMatch = game.arenas[index].game
		if played.end != TagMatch.End.GOING_ON:
			_rested[index] += game.rules.decision_ticks
			if _rested[index] < REST_TICKS:
				continue
			game.begin_next(index)
		_rested[index] = 0
		playing.append(played)
	var actions: Array[PackedFloat32Array] = _pair.act_all(playing)
	for index: int in playing.size():
		if _person >= 0 and playing[index] == game.arenas[0].game:
			actions[2 * index + _person] = TagInput.action()
		playing[index].command(actions[2 * index], actions[2 * index + 1])
	return true


func may_restart() -> bool:
	return true


## The name to show for the player of a role.
func name_of(role: String) -> String:
	return "you" if _persons_role == role else game.options.text(role)


## The action of an agent's player: the person, or the player of its role.
func action(index: int, agent: int) -> PackedFloat32Array:
	if index == 0 and agent == _person:
		return TagInput.action()
	var played: TagMatch = game.arenas[index].game
	return _pair.act(played.role_of(agent), played.observations[agent])
