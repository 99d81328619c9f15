class_name TagEvaluation
extends TagDriver
## Plays `--matches=N` matches between two players at full speed, prints the result, and quits.
##
## Match n is the first episode of arena n, as in Python: the same seed starts the same matches. The
## result is one line of JSON.

const NONE: int = -1

var _pair: TagPair
var _wanted: int
var _started: int = 0
## The match that is played in each arena, or NONE.
var _numbers: Array[int] = []
## By match: who won (0 started as seeker, 1 as hider, -1 nobody), and its length.
var _winners: PackedInt32Array = []
var _ticks: PackedInt32Array = []


func start(played: TagGame) -> String:
	super(played)
	_pair = TagPair.new(game.options, game.rules)
	_wanted = game.options.number("matches")
	_winners.resize(_wanted)
	_ticks.resize(_wanted)
	# The match does not read the bodies; without a display their physics only costs time.
	PhysicsServer3D.set_active(TagLook.wanted)
	for role: String in TagPair.ROLES:
		game.players[role] = game.options.text(role)
	_numbers.resize(game.arenas.size())
	for index: int in game.arenas.size():
		_begin(index)
	return _pair.error


func decide() -> bool:
	var playing: Array[TagMatch] = []
	for index: int in game.arenas.size():
		if _numbers[index] != NONE:
			playing.append(game.arenas[index].game)
	if playing.is_empty():
		_print_result()
		game.quit()
		return false
	var actions: Array[PackedFloat32Array] = _pair.act_all(playing)
	for index: int in playing.size():
		playing[index].command(actions[2 * index], actions[2 * index + 1])
	return true


func conclude() -> void:
	for index: int in game.arenas.size():
		var played: TagMatch = game.arenas[index].game
		if _numbers[index] == NONE or played.end == TagMatch.End.GOING_ON:
			continue
		_ticks[_numbers[index]] = played.tick
		_winners[_numbers[index]] = TagMatch.NOBODY
		if played.winner != TagMatch.NOBODY:
			_winners[_numbers[index]] = 0 if played.winner == played.first_seeker else 1
		_begin(index)


## Start the next match in an arena, if one is left.
func _begin(index: int) -> void:
	_numbers[index] = NONE
	if _started == _wanted:
		return
	_numbers[index] = _started
	_started += 1
	game.arenas[index].game.number = _numbers[index]
	game.arenas[index].game.episode = -1
	game.begin_next(index)


func _print_result() -> void:
	var won: float = 0.0
	for winner: int in _winners:
		won += 0.5 if winner == TagMatch.NOBODY else float(winner == 0)
	var result: Dictionary = {
		"seeker": game.options.text("seeker"),
		"hider": game.options.text("hider"),
		"seed": game.options.number("seed"),
		"matches": _wanted,
		"seeker_win_rate": won / _wanted,
		"winners": _winners,
		"ticks": _ticks,
	}
	print(JSON.stringify(result))
