class_name TagReplayControls
extends CanvasLayer
## The keys and the timeline of a replay.

const SPEEDS: Array[float] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0]
const LEAP_SEC: float = 1.0

## The replay to control.
@export var replay: TagReplay

## Whether the timeline is moved by the replay, not by the user.
var _following: bool = false

@onready var _timeline: HSlider = $Timeline
@onready var _about: Label = $About


func _ready() -> void:
	_timeline.value_changed.connect(_on_timeline_moved)


func _process(_delta: float) -> void:
	if replay.arenas.is_empty():
		return
	_following = true
	_timeline.max_value = replay.seconds()
	_timeline.value = replay.second()
	_following = false
	var name: String = replay.files[replay.file].get_file()
	var state: String = "%s×" % replay.speed if replay.playing else "paused"
	var which: String = "%d of %d" % [replay.file + 1, replay.files.size()]
	_about.text = "%.2f s   %s\n%s\n%s" % [replay.second(), state, name, which]


func _unhandled_key_input(event: InputEvent) -> void:
	var key: InputEventKey = event as InputEventKey
	if not key or not key.pressed or replay.arenas.is_empty():
		return
	match key.keycode:
		KEY_SPACE:
			_pause_or_play()
		KEY_LEFT:
			replay.seek(replay.second() - LEAP_SEC)
		KEY_RIGHT:
			replay.seek(replay.second() + LEAP_SEC)
		KEY_HOME:
			replay.seek(0.0)
		KEY_END:
			replay.seek(replay.seconds())
		KEY_UP:
			_change_speed(1)
		KEY_DOWN:
			_change_speed(-1)
		KEY_COMMA:
			replay.step(-1)
		KEY_PERIOD:
			replay.step(1)
		KEY_N:
			replay.turn(1)
		KEY_P:
			replay.turn(-1)
		KEY_R:
			replay.restart()
		KEY_ESCAPE:
			get_tree().quit()


func _pause_or_play() -> void:
	if replay.second() >= replay.seconds():
		replay.restart()
	else:
		replay.playing = not replay.playing


func _change_speed(by: int) -> void:
	var at: int = SPEEDS.bsearch(replay.speed)
	if by > 0 and at < SPEEDS.size() and not is_equal_approx(SPEEDS[at], replay.speed):
		at -= 1
	replay.speed = SPEEDS[clampi(at + by, 0, SPEEDS.size() - 1)]


func _on_timeline_moved(second: float) -> void:
	if not _following:
		replay.seek(second)
