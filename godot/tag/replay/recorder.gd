class_name Recorder
extends Node
## Writes the picture to PNG files, one per 1/fps second of the game's time.
##
## However long drawing takes, frame k shows the game at k/fps, or a replay at the k-th time of a
## file. Earlier frames than the first are played but not drawn, so that a frame looks the same
## whichever is the first. A file gets its name only when it is complete.

const NAME: String = "frame_%06d.png"
const UNFINISHED: String = ".part"
## Runs before everything that reads the stage.
const PRIORITY: int = -1000
## How many pictures, of some megabytes each, may wait to be written.
const MAX_WAITING: int = 4
const LARGEST_TIMES_BYTES: int = 64 * 1024 * 1024

## Whether to record from the start; AI_RECORD=1 does the same.
@export var enabled: bool = false
## The view to record.
@export var view: TagView
## Layers to hide in the recording.
@export var hidden: Array[CanvasLayer] = []

## The process's own options, unless set before the recorder is ready.
var options: TagOptions

var _fps: int
var _folder: String
## Seconds into a replay, one per frame; empty for a live game.
var _times: PackedFloat64Array = []
var _last: int = TagOptions.MOST_FRAMES
var _next: int = 0
## The frame that is drawn now, or -1.
var _drawn: int = -1
var _first_tick: int = -1
var _waiting: Array[int] = []
var _failure: String = ""
## Guards the failure: files are written by other threads.
var _lock: Mutex = Mutex.new()


func _ready() -> void:
	if not options:
		options = TagOptions.of_process()
	process_priority = PRIORITY
	set_process(false)
	if options.error or view.stage.arenas.is_empty():
		return  # the stage has said so
	if not enabled and not options.is_on("record") and not options.text("frames-to"):
		return
	if not TagLook.wanted:
		printerr("estragon: without a display nothing is drawn, so nothing is recorded")
		return
	var problem: String = _set_up()
	if problem:
		_fail(problem)
		return
	set_process(true)
	RenderingServer.frame_post_draw.connect(_on_drawn)


func _process(_delta: float) -> void:
	_drawn = -1
	if _failure:
		_fail(_failure)
	elif _next > _last:
		set_process(false)
		_finish_writing()
		if _failure:
			_fail(_failure)
		else:
			get_tree().quit()
	elif _times:
		(view.stage as TagReplay).hold(_times[_next])
		_start_frame()
	elif _is_due():
		_start_frame()
	RenderingServer.render_loop_enabled = _drawn >= 0


func _exit_tree() -> void:
	_finish_writing()
	RenderingServer.render_loop_enabled = true


func _get_configuration_warnings() -> PackedStringArray:
	return [] if view else ["Set the view that is to be recorded."]


func _set_up() -> String:
	_fps = options.number("record-fps")
	_folder = options.path("frames-to")
	if not _folder:
		_folder = options.data_folder("frames")
	var stage: TagStage = view.stage
	if stage is TagReplay:
		var problem: String = _read_times(stage as TagReplay)
		if problem:
			return problem
	elif options.text("times"):
		return "--times is for replays; a game is recorded as it is played"
	elif _fps > stage.rules.ticks_per_second:
		return "--record-fps: a game has %d ticks a second" % stage.rules.ticks_per_second
	if options.text("last-frame"):
		_last = mini(_last, options.number("last-frame"))
	view.hud.show_keys = false
	view.hud.visible = options.is_on("hud")
	for layer: CanvasLayer in hidden:
		layer.hide()
	# slow drawing slows the game down instead of skipping frames
	Engine.max_physics_steps_per_frame = ceili(float(stage.rules.ticks_per_second) / _fps)
	return _prepare_folder()


func _prepare_folder() -> String:
	var problem: Error = DirAccess.make_dir_recursive_absolute(_folder)
	if problem != OK:
		return "cannot make the folder %s: %s" % [_folder, error_string(problem)]
	if options.is_on("keep-frames"):
		return ""
	for name: String in DirAccess.get_files_at(_folder):
		if name.match("frame_*.png"):
			return "%s holds frames already; move them, or choose another --frames-to" % _folder
	return ""


## The times of a replay's frames.
func _read_times(replay: TagReplay) -> String:
	var path: String = options.path("times")
	if not path:
		for frame: int in ceili(replay.seconds() * _fps) + 1:
			_times.append(float(frame) / _fps)
		_last = _times.size() - 1
		return ""
	var file: FileAccess = FileAccess.open(path, FileAccess.READ)
	if not file or file.get_length() > LARGEST_TIMES_BYTES:
		return "--times: cannot read %s" % path
	var json: JSON = JSON.new()
	if json.parse(file.get_as_text()) != OK or not json.data is Array or not json.data:
		return "--times: %s is not a JSON list of seconds" % path
	if not TagLayout.is_numbers(json.data, json.data.size()):
		return "--times: %s has something else than seconds in it" % path
	for second: float in json.data:
		if second < 0.0 or (_times and second < _times[-1]):
			return "--times: %s goes back at %s s" % [path, second]
		_times.append(second)
	_last = _times.size() - 1
	return ""


## Whether the live game has reached the time of the next frame.
func _is_due() -> bool:
	if _first_tick < 0:
		_first_tick = Engine.get_physics_frames()
	var ticks: int = Engine.get_physics_frames() - _first_tick
	return ticks * _fps >= _next * view.stage.rules.ticks_per_second


func _start_frame() -> void:
	var is_wanted: bool = _next >= options.number("first-frame")
	if is_wanted and options.is_on("keep-frames"):
		is_wanted = not FileAccess.file_exists(_path(_next))
	if is_wanted:
		_drawn = _next
	_next += 1


func _on_drawn() -> void:
	if _drawn < 0:
		return
	var picture: Image = get_viewport().get_texture().get_image()
	var path: String = _path(_drawn)
	_drawn = -1
	if _waiting.size() >= MAX_WAITING:
		WorkerThreadPool.wait_for_task_completion(_waiting.pop_front())
	_waiting.append(WorkerThreadPool.add_task(_write.bind(picture, path)))


## Runs in another thread.
func _write(picture: Image, path: String) -> void:
	picture.convert(Image.FORMAT_RGB8)
	var unfinished: String = path + UNFINISHED
	var problem: String = _store(picture.save_png_to_buffer(), unfinished)
	if not problem and DirAccess.rename_absolute(unfinished, path) != OK:
		problem = "it cannot be given its name"
	if problem:
		DirAccess.remove_absolute(unfinished)
		_lock.lock()
		_failure = "cannot write %s: %s" % [path, problem]
		_lock.unlock()


## Write a file; returns the problem, or "".
func _store(data: PackedByteArray, path: String) -> String:
	var file: FileAccess = FileAccess.open(path, FileAccess.WRITE)
	if not file:
		return error_string(FileAccess.get_open_error())
	file.store_buffer(data)
	file.close()
	# nothing else reveals a full disk
	var written: FileAccess = FileAccess.open(path, FileAccess.READ)
	var is_whole: bool = written and written.get_length() == data.size()
	return "" if is_whole else "the disk is full"


func _finish_writing() -> void:
	for task: int in _waiting:
		WorkerThreadPool.wait_for_task_completion(task)
	_waiting.clear()


func _fail(problem: String) -> void:
	set_process(false)
	view.stage.quit(problem)


func _path(frame: int) -> String:
	return _folder.path_join(NAME % frame)
