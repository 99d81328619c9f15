class_name TagReplay
extends TagStage
## Shows logged matches, at any speed, forwards and backwards.
##
##   godot --path godot res://scenes/Replay.tscn -- --replay=FILE
##
## FILE is a match or a folder of matches; AI_REPLAY_PATH does the same.

## How long the end is shown.
const HOLD_SEC: float = 1.5

## The process's own options, unless set before the replay is ready.
var options: TagOptions
var files: PackedStringArray = []
## Index of the file that is shown.
var file: int = 0
## Seconds of the match per second.
var speed: float = 1.0
var playing: bool = true

var _playback: TagPlayback
var _second: float = 0.0
var _shown_second: float = 0.0
var _shown_end: TagMatch.End = TagMatch.End.GOING_ON


func _ready() -> void:
	if not options:
		options = TagOptions.of_process()
	speed = options.real("speed")
	title = options.text("title")
	var problem: String = options.error
	if not problem:
		problem = _find_files(options.path("replay"))
	if not problem:
		problem = open(0)
	if problem:
		quit(problem)


func _process(delta: float) -> void:
	if playing:
		_play(delta)
	_show(delta)


func moment() -> float:
	return minf(_second, _playback.seconds())


## The second that is shown, which may be after the match's end.
func second() -> float:
	return _second


## Length of the match and its end.
func seconds() -> float:
	return _playback.seconds() + HOLD_SEC


## Show another file from the start; returns the problem, or "".
func open(which: int) -> String:
	var trajectory: TagTrajectoryFile = TagTrajectoryFile.read(files[which])
	if trajectory.error:
		return trajectory.error
	file = which
	_playback = TagPlayback.new(trajectory)
	rules = trajectory.start.rules
	for role: String in players:
		var name: String = options.text(role + "-name")
		players[role] = name if name else trajectory.start.players[role]
	if arenas.is_empty():
		var arena: TagArena = TagArena.create()
		add_child(arena)
		arenas.append(arena)
	arenas[0].setup(_playback.game)
	restart()
	return ""


## Show the next file, or with -1 the previous one, if there is one.
func turn(by: int) -> void:
	if file + by < 0 or file + by >= files.size():
		return
	var problem: String = open(file + by)
	if problem:
		printerr("estragon: " + problem)


## Play from the start.
func restart() -> void:
	seek(0.0)
	_shown_second = 0.0
	_shown_end = TagMatch.End.GOING_ON
	playing = true
	episode_began.emit(0, _playback.game)


## Move to this second of the match.
func seek(to_second: float) -> void:
	_second = clampf(to_second, 0.0, seconds())


## Pause at this second, which may be after the end.
func hold(at_second: float) -> void:
	playing = false
	_second = at_second


## Pause and move by whole ticks.
func step(ticks: int) -> void:
	playing = false
	var tick: int = roundi(_second * rules.ticks_per_second)
	seek(float(tick + ticks) / rules.ticks_per_second)


func _play(delta: float) -> void:
	seek(_second + delta * speed)
	if _second >= seconds():
		playing = false
		turn(1)


func _show(delta: float) -> void:
	var elapsed: float = maxf(_second - _shown_second, 0.0)
	_shown_second = _second
	_playback.show_at(_second)
	arenas[0].follow()
	if arenas[0].look:
		arenas[0].look.time_scale = elapsed / delta if delta > 0.0 else 0.0
	var game: TagMatch = _playback.game
	if game.end != _shown_end:
		_shown_end = game.end
		if game.end != TagMatch.End.GOING_ON:
			episode_ended.emit(0, game)


func _find_files(path: String) -> String:
	if not path:
		return "a replay needs a file: --replay=FILE, or AI_REPLAY_PATH"
	if not DirAccess.dir_exists_absolute(path):
		files = [path]
		return ""
	for name: String in DirAccess.get_files_at(path):
		if name.ends_with(".jsonl"):
			files.append(path.path_join(name))
	files.sort()
	return "" if files else "%s: no matches (*.jsonl) in this folder" % path
