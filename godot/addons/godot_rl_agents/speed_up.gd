extends RefCounted
## Applies `speed_up`, unless `--fixed-fps` already runs the game as fast as possible.

## The number of frames to compare.
const LOOKS: int = 5

## Whether the decision has been made.
var is_set: bool = false

var _speed_up: float
var _frames_sec: PackedFloat64Array = []


func _init(speed_up: float) -> void:
	_speed_up = speed_up
	is_set = speed_up == 1.0


## Call once per frame. Godot does not report `--fixed-fps`, but only with it do the first frames
## have the same duration.
func look(frame_sec: float) -> void:
	_frames_sec.append(frame_sec)
	if _frames_sec.size() < LOOKS:
		return
	is_set = true
	if _frames_sec.count(frame_sec) == LOOKS:
		return
	Engine.physics_ticks_per_second = roundi(Engine.physics_ticks_per_second * _speed_up)
	Engine.time_scale = _speed_up
	Engine.max_physics_steps_per_frame = maxi(Engine.max_physics_steps_per_frame, ceili(_speed_up))
