extends SceneTree
## How fast the game plays here: agent-decisions a second, beside the same bodies without eyes.
##
## Run as `godot --headless --path godot --fixed-fps 60 -s res://tests/bench.gd -- 32 2.0`: arenas
## and seconds a side. Prints one JSON object. The sides take turns, so that noise meets both alike.

const ROUNDS: int = 4
const WARM_UP_FRAMES: int = 20

var _rules: TagRules
var _arenas: Array[TagArena] = []
var _frames: int = 0
var _plays: bool = true
var _turns: int = 0
var _turn_start: int = 0
var _turn_frames: int = 0
var _turn_sec: float = 1.0
var _rates: Dictionary[bool, PackedFloat64Array] = {true: [], false: []}


func _initialize() -> void:
	var words: PackedStringArray = OS.get_cmdline_user_args()
	var count: int = words[0].to_int() if words.size() > 0 else 1
	_turn_sec = (words[1].to_float() if words.size() > 1 else 2.0) / ROUNDS
	_rules = TagRules.read()
	var layouts: Array[TagLayout] = [TagLayout.read(_rules.default_layout, _rules)]
	for index: int in count:
		var arena: TagArena = TagArena.create()
		arena.position = TagGame.grid_place(index, count, _rules)
		root.add_child(arena)
		var game: TagMatch = TagMatch.new(_rules, layouts, 0, index)
		game.begin(0)
		arena.setup(game)
		_arenas.append(arena)


func _physics_process(_delta: float) -> bool:
	_frames += 1
	if _frames == WARM_UP_FRAMES:
		_turn_start = Time.get_ticks_usec()
	for index: int in _arenas.size():
		if _plays:
			_play(_arenas[index], index)
		else:
			_drift(_arenas[index], index)
	if _frames > WARM_UP_FRAMES:
		_turn_frames += 1
		# turns end between decisions, so that each counts whole ones
		if _turn_frames % _rules.decision_ticks == 0:
			return _count_turn()
	return false


## A tick of the real game: decide when it is time, move, look.
func _play(arena: TagArena, index: int) -> void:
	var game: TagMatch = arena.game
	if _frames % _rules.decision_ticks == 0:
		var turn: float = 0.05 * _frames + index
		game.command(
			PackedFloat32Array([sin(turn), cos(turn), 0.0]),
			PackedFloat32Array([cos(0.7 * turn), sin(0.7 * turn), 1.0 if index % 2 == 0 else 0.0])
		)
	game.advance()
	if _frames % _rules.decision_ticks == _rules.decision_ticks - 1:
		game.conclude()
		if game.end != TagMatch.End.GOING_ON:
			game.begin(game.episode + 1)
	arena.follow()


## A tick of a bare scene: the same bodies move, and that is all.
func _drift(arena: TagArena, index: int) -> void:
	var turn: float = 0.05 * _frames + index
	arena.bodies[0].position = Vector3(6.0 * sin(turn), 0.501, 6.0 * cos(turn))
	arena.bodies[1].position = Vector3(-6.0 * sin(turn), 0.501, -6.0 * cos(turn))


func _count_turn() -> bool:
	var spent: float = (Time.get_ticks_usec() - _turn_start) / 1000000.0
	if spent < _turn_sec:
		return false
	var decisions: float = 2.0 * _arenas.size() * _turn_frames / _rules.decision_ticks
	_rates[_plays].append(decisions / spent)
	_plays = not _plays
	_turns += 1
	_turn_frames = 0
	_turn_start = Time.get_ticks_usec()
	if _turns < 2 * ROUNDS:
		return false
	print(JSON.stringify({"game": _median(_rates[true]), "bare": _median(_rates[false])}))
	return true


func _median(rates: PackedFloat64Array) -> float:
	rates.sort()
	return 0.5 * (rates[(ROUNDS - 1) >> 1] + rates[ROUNDS >> 1])
