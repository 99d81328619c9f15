class_name TagGame
extends TagStage
## The game: arenas on a centred grid, and who plays in them.
##
## Each decision is sense, decide, move, in that order, in whole ticks; no rule reads a clock.
## Played by a person and bots, or from Python when the game was started with `--channel=PORT`.

## Free ground between two arenas.
const SPACING_M: float = 4.0
const REST_TICKS: int = 90
const BAD_INPUT: int = 2

## The role a person plays, where the command line names none.
@export_enum("nobody", "seeker", "hider") var person_plays: String = "seeker"

## What was asked for: the process's own, unless set before the game is ready.
var options: TagOptions

var _lockstep: TagLockstep
var _log: TagTrajectoryLog
var _players: Dictionary[String, TagBot] = {}
var _person: int = -1
var _ticks_played: int = 0
var _going_on: Array[bool] = []
var _resting: Array[int] = []


func _ready() -> void:
	TagInput.install()
	if not options:
		options = TagOptions.of_process()
	var file: String = options.text("rules-file")
	rules = TagRules.read(
		options.text("rules"), options.text("rewards"), file if file else TagRules.PATH
	)
	var complaint: String = options.error if options.error else rules.error
	if not complaint:
		complaint = _set_up()
	if complaint:
		printerr("estragon: " + complaint)
		set_physics_process(false)
		get_tree().quit(BAD_INPUT)


func _physics_process(_delta: float) -> void:
	if _ticks_played == 0 and not _decide():
		return
	_advance()
	_ticks_played += 1
	if _ticks_played == rules.decision_ticks:
		_ticks_played = 0
		_conclude()
	for arena: TagArena in arenas:
		arena.follow()


func _unhandled_input(event: InputEvent) -> void:
	if event.is_action_pressed("leave"):
		get_tree().quit()
	elif event.is_action_pressed("restart") and not _lockstep:
		restart()


## Begin the next episode everywhere.
func restart() -> void:
	_ticks_played = 0
	for index: int in arenas.size():
		_begin_next(index)


## Where arena `index` of `count` stands: a square grid centred on the origin.
static func grid_place(index: int, count: int, game: TagRules) -> Vector3:
	var columns: int = ceili(sqrt(count))
	var rows: int = ceili(float(count) / columns)
	var step_x: float = 2.0 * game.wall_x + SPACING_M
	var step_z: float = 2.0 * game.wall_z + SPACING_M
	var column: int = index % columns
	var row: int = floori(float(index) / columns)
	return Vector3((column - 0.5 * (columns - 1)) * step_x, 0.0, (row - 0.5 * (rows - 1)) * step_z)


func _set_up() -> String:
	var layouts: Array[TagLayout] = []
	var spec: String = options.text("layout")
	for part: String in (spec if spec else rules.default_layout).split(","):
		var layout: TagLayout = TagLayout.read(part, rules)
		if layout.error:
			return layout.error
		layouts.append(layout)
	_add_arenas(layouts)
	if options.text("channel"):
		return _open_channel()
	title = options.text("title")
	var role: String = options.text("play") if options.text("play") else person_plays
	if DisplayServer.get_name() == "headless" and not options.text("play"):
		role = "nobody"
	_person = ["seeker", "hider"].find(role)
	if _person >= 0 and options.number("first-seeker") == 1:
		_person = 1 - _person
	for name: String in ["seeker", "hider"]:
		_players[name] = TagBot.new(TagBot.NAMES[options.text(name)], rules)
		players[name] = "you" if role == name else options.text(name)
	return _start_log() if options.is_on("log-trajectories") else ""


func _start_log() -> String:
	_log = TagTrajectoryLog.new(options.data_folder("trajectories"), players)
	episode_began.connect(_log.begin)
	for index: int in arenas.size():
		_log.begin(index, arenas[index].game)
	return _log.prepare()


func _open_channel() -> String:
	var matches: Array[TagMatch] = []
	for arena: TagArena in arenas:
		matches.append(arena.game)
	_lockstep = TagLockstep.new(matches)
	return "" if _lockstep.open(options.number("channel")) else _lockstep.channel.closed


func _add_arenas(layouts: Array[TagLayout]) -> void:
	var count: int = options.number("arenas")
	for index: int in count:
		var game: TagMatch = TagMatch.new(
			rules,
			layouts,
			options.number("seed"),
			options.number("first-arena") + index,
			options.number("first-seeker")
		)
		game.begin(0)
		var arena: TagArena = TagArena.new()
		arena.name = "Arena%d" % (index + 1)
		arena.position = grid_place(index, count, rules)
		add_child(arena)
		arena.hold(game)
		arenas.append(arena)
		_going_on.append(true)
		_resting.append(0)


## Give every agent its command for the next decision; false if the game is over.
func _decide() -> bool:
	if _lockstep:
		if _lockstep.take_actions():
			_going_on.fill(true)
			return true
		set_physics_process(false)
		get_tree().quit()
		return false
	for index: int in arenas.size():
		var game: TagMatch = arenas[index].game
		if _resting[index] > 0:
			_resting[index] -= rules.decision_ticks
			if _resting[index] > 0:
				continue
			_begin_next(index)
		game.command(_action(index, 0), _action(index, 1))
		_going_on[index] = true
	return true


func _action(index: int, agent: int) -> PackedFloat32Array:
	var game: TagMatch = arenas[index].game
	if index == 0 and agent == _person:
		return TagInput.action()
	var role: String = "seeker" if agent == game.seeker else "hider"
	return _players[role].act(game.observations[agent])


func _advance() -> void:
	for index: int in arenas.size():
		if _going_on[index]:
			_going_on[index] = arenas[index].game.advance()


func _conclude() -> void:
	for index: int in arenas.size():
		if _resting[index] > 0:
			continue
		var game: TagMatch = arenas[index].game
		game.conclude()
		if _log:
			_log.look(index)
		if game.end != TagMatch.End.GOING_ON:
			episode_ended.emit(index, game)
			if not _lockstep:
				_resting[index] = REST_TICKS
				_going_on[index] = false
	if _lockstep:
		_lockstep.answer()


func _begin_next(index: int) -> void:
	_resting[index] = 0
	_going_on[index] = true
	arenas[index].game.begin(arenas[index].game.episode + 1)
	episode_began.emit(index, arenas[index].game)
