class_name TagCommand
extends RefCounted
## An action made safe: no NaN, the move at most 1 long, jump yes or no.

var move_x: float
var move_z: float
## Whether the move is long enough to turn to; then (want_x, want_z) is its direction.
var turns: bool
var want_x: float
var want_z: float
var jumps: bool


## Take an action: move_x, move_z, jump.
func take(x: float, z: float, jump: float, rules: TagRules) -> void:
	move_x = _part(x)
	move_z = _part(z)
	var length: float = sqrt(move_x * move_x + move_z * move_z)
	if length > 1.0:
		move_x = move_x / length
		move_z = move_z / length
		length = 1.0
	turns = length > rules.facing_dead_zone
	want_x = move_x / length if turns else 0.0
	want_z = move_z / length if turns else 0.0
	jumps = jump > rules.jump_threshold


## Stand still.
func clear() -> void:
	move_x = 0.0
	move_z = 0.0
	turns = false
	jumps = false


static func _part(value: float) -> float:
	if is_nan(value):
		return 0.0
	if value > 1.0:
		return 1.0
	if value < -1.0:
		return -1.0
	return value
