extends RefCounted
## How fast the game goes: `speed_up` times, unless `--fixed-fps` makes it as fast as it can.

## How many frames are looked at.
const LOOKS: int = 5

## Whether there is nothing left to find out.
var is_set: bool = false

var _speed_up: float
var _frames_sec: PackedFloat64Array = []


func _init(speed_up: float) -> void:
	_speed_up = speed_up
	is_set = speed_up == 1.0


## A frame has passed. Godot does not say whether `--fixed-fps` is on, but only then are the first
## frames equally long.
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
