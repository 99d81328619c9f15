class_name TagGame
extends TagStage
## The game: arenas on a centred grid, and a driver that commands the agents in them.
##
## Each decision is sense, decide, move, in that order, in whole ticks; no rule reads a clock.
## Played by a person, bots and policies; by a server that is requested or found; or from Python,
## if started with `--channel=PORT`.

## Distance between two arenas.
const SPACING_M: float = 4.0

## The role a person plays, unless the command line names one.
@export_enum("nobody", "seeker", "hider") var person_plays: String = "seeker"
## Live play with a server.
@export var live: RLEnv

## The process's own options, unless set before the game is ready.
var options: TagOptions
## Commands the agents.
var driver: TagDriver

var _log: TagTrajectoryLog
var _ticks_played: int = 0


func _ready() -> void:
	TagInput.install()
	if not options:
		options = TagOptions.of_process()
	var problem: String = _set_up()
	if problem:
		quit(problem)


func _physics_process(_delta: float) -> void:
	if _ticks_played == 0 and not driver.decide():
		return
	for arena: TagArena in arenas:
		if arena.game.goes_on():
			arena.game.advance()
	_ticks_played += 1
	if _ticks_played == rules.decision_ticks:
		_ticks_played = 0
		_conclude()
	for arena: TagArena in arenas:
		arena.follow()


func _unhandled_input(event: InputEvent) -> void:
	if event.is_action_pressed("leave"):
		get_tree().quit()
	elif event.is_action_pressed("restart") and driver.may_restart():
		restart()


## Begin the next episode everywhere.
func restart() -> void:
	_ticks_played = 0
	for index: int in arenas.size():
		begin_next(index)


## Begin the next episode in one arena.
func begin_next(index: int) -> void:
	arenas[index].game.begin(arenas[index].game.episode + 1)
	episode_began.emit(index, arenas[index].game)


## Where arena `index` of `count` stands: a square grid centred on the origin.
static func grid_place(index: int, count: int, game: TagRules) -> Vector3:
	var columns: int = ceili(sqrt(count))
	var rows: int = ceili(float(count) / columns)
	var step_x: float = 2.0 * game.wall_x + SPACING_M
	var step_z: float = 2.0 * game.wall_z + SPACING_M
	var column: int = index % columns
	var row: int = floori(float(index) / columns)
	return Vector3((column - 0.5 * (columns - 1)) * step_x, 0.0, (row - 0.5 * (rows - 1)) * step_z)


## The match of an arena; tests override this to play another kind.
func _make_match(layouts: Array[TagLayout], number: int, first_seeker: int) -> TagMatch:
	return TagMatch.new(rules, layouts, options.number("seed"), number, first_seeker)


func _set_up() -> String:
	if options.error:
		return options.error
	var file: String = options.text("rules-file")
	rules = TagRules.read(
		options.text("rules"), options.text("rewards"), file if file else TagRules.PATH
	)
	if rules.error:
		return rules.error
	var problem: String = _choose_driver()
	if not problem:
		problem = _add_arenas()
	if problem:
		return problem
	if options.text("title"):
		title = options.text("title")
	if not driver.get_parent():
		add_child(driver)
	problem = driver.start(self)
	return problem if problem else _start_log()


func _choose_driver() -> String:
	if options.text("channel"):
		driver = TagLockstep.new()
		return ""
	if options.number("matches") > 0:
		driver = TagEvaluation.new()
		return ""
	var problem: String = live.prepare(options, rules) if live else ""
	driver = live if live and live.is_wanted() else TagPlayers.new()
	return problem


func _add_arenas() -> String:
	var layouts: Array[TagLayout] = []
	var spec: String = options.text("layout")
	for part: String in (spec if spec else rules.default_layout).split(","):
		var layout: TagLayout = TagLayout.read(part, rules)
		if layout.error:
			return layout.error
		layouts.append(layout)
	var count: int = options.number("arenas")
	var first_seeker: int = options.number("first-seeker")
	if live and driver == live and not live.ai_is_it:
		first_seeker = 1
	for index: int in count:
		var game: TagMatch = _make_match(
			layouts, options.number("first-arena") + index, first_seeker
		)
		game.begin(0)
		var arena: TagArena = TagArena.create("Arena%d" % (index + 1))
		arena.position = grid_place(index, count, rules)
		add_child(arena)
		arena.setup(game)
		arenas.append(arena)
	return ""


func _start_log() -> String:
	var wanted: bool = options.is_on("log-trajectories") or (live and live.log_trajectories)
	if not wanted or options.text("channel"):
		return ""
	_log = TagTrajectoryLog.new(options.data_folder("trajectories"), players)
	episode_began.connect(_log.begin)
	for index: int in arenas.size():
		_log.begin(index, arenas[index].game)
	return _log.prepare()


func _conclude() -> void:
	for index: int in arenas.size():
		var game: TagMatch = arenas[index].game
		if not game.deciding:
			continue
		game.conclude()
		if _log:
			_log.record(index)
		if game.end != TagMatch.End.GOING_ON:
			episode_ended.emit(index, game)
	driver.conclude()
