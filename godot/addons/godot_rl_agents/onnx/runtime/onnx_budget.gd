@tool
extends RefCounted
## How much a model may cost: work is counted before it is done, so that no file can stall the game.

## Largest file that is opened, its weights beside it included.
const LARGEST_FILE: int = 256 * 1024 * 1024
## Largest tensor, in elements.
const LARGEST_TENSOR: int = 16 * 1024 * 1024
const LARGEST_RANK: int = 8
const LARGEST_GRAPH: int = 20000
## Work of reading a file: a field, or an element that has to be decoded, is one.
const READING: int = 20 * 1000 * 1000
## Work of the trial at load and of constant parts: an element computed is one.
const TRIAL: int = 4 * 1000 * 1000
## Work of one prediction.
const PREDICTION: int = 500 * 1000 * 1000

## Whether more was asked for than there was.
var exceeded: bool = false

var _left: int
var _deadline_msec: int


func _init(work: int, limit_sec: float) -> void:
	refill(work, limit_sec)


func refill(work: int, limit_sec: float) -> void:
	exceeded = false
	_left = work
	_deadline_msec = Time.get_ticks_msec() + int(limit_sec * 1000.0)


## Take `work` out of the budget; false, and nothing may be done, if it is not there.
func spend(work: int) -> bool:
	_left -= work
	if work < 0 or _left < 0 or (work > 256 and Time.get_ticks_msec() > _deadline_msec):
		_left = 0
		exceeded = true
	return not exceeded
