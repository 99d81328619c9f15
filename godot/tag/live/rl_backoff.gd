class_name RLBackoff
extends RefCounted
## How long to wait before the next try: twice as long after each that failed, up to a limit.

const FIRST_SEC: float = 0.25
const LONGEST_SEC: float = 8.0

var _next_sec: float = FIRST_SEC


## The wait before the next try.
func take_sec() -> float:
	var wait_sec: float = _next_sec
	_next_sec = minf(2.0 * _next_sec, LONGEST_SEC)
	return wait_sec


## It worked: begin with a short wait the next time.
func reset() -> void:
	_next_sec = FIRST_SEC
