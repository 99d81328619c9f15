class_name TagSolver
extends RefCounted
## One tick of movement, contact and facing, exactly as docs/physics.md specifies it.
##
## A GDScript float is a double; only + - * / sqrt and comparisons, in a fixed order, so that the
## embedded engine computes the same bits. One for each agent: it keeps which boxes are near.

## How far around an agent boxes are looked for, to be looked for again only once it is there.
const NEAR_M: float = 1.0
## Where the numbers of a box are that a sweep needs.
const GROWN_LOW_X: int = TagLayout.Part.GROWN_LOW
const GROWN_LOW_Y: int = TagLayout.Part.GROWN_LOW + 1
const GROWN_LOW_Z: int = TagLayout.Part.GROWN_LOW + 2
const GROWN_HIGH_X: int = TagLayout.Part.GROWN_HIGH
const GROWN_HIGH_Y: int = TagLayout.Part.GROWN_HIGH + 1
const GROWN_HIGH_Z: int = TagLayout.Part.GROWN_HIGH + 2
const STOP_LOW_X: int = TagLayout.Part.STOP_LOW
const STOP_LOW_Y: int = TagLayout.Part.STOP_LOW + 1
const STOP_LOW_Z: int = TagLayout.Part.STOP_LOW + 2
const STOP_HIGH_X: int = TagLayout.Part.STOP_HIGH
const STOP_HIGH_Y: int = TagLayout.Part.STOP_HIGH + 1
const STOP_HIGH_Z: int = TagLayout.Part.STOP_HIGH + 2
const MIDDLE_X: int = TagLayout.Part.MIDDLE
const MIDDLE_Y: int = TagLayout.Part.MIDDLE + 1
const MIDDLE_Z: int = TagLayout.Part.MIDDLE + 2

# Copies of what the rules say: a property of another object takes as long as three products.
var _tick_sec: float
var _fall_per_tick: float
var _half_fall_per_tick: float
var _jump_speed: float
var _speed: float
var _speed_change_per_tick: float
var _turn_cos: float
var _turn_sin: float
var _stop_x: float
var _stop_z: float
var _stop_floor: float
var _size: float
var _skin: float
var _boxes: PackedFloat64Array
var _count: int
## Where the boxes begin that can be touched between these bounds; none yet.
var _near: PackedInt32Array = []
var _low_x: float = INF
var _high_x: float = -INF
var _low_z: float = INF
var _high_z: float = -INF


func _init(rules: TagRules, layout: TagLayout) -> void:
	_tick_sec = rules.tick_sec
	_fall_per_tick = rules.fall_per_tick
	_half_fall_per_tick = rules.half_fall_per_tick
	_jump_speed = rules.jump_speed
	_speed = rules.speed
	_speed_change_per_tick = rules.speed_change_per_tick
	_turn_cos = rules.turn_cos
	_turn_sin = rules.turn_sin
	_stop_x = rules.stop_x
	_stop_z = rules.stop_z
	_stop_floor = rules.stop_floor
	_size = rules.size
	_skin = rules.skin
	_boxes = layout.numbers
	_count = layout.count


## Move one agent by one tick; returns whether it jumped and rose.
func move(agent: TagAgent, other: TagAgent, command: TagCommand) -> bool:
	if command.turns:
		_turn(agent, command.want_x, command.want_z)
	var velocity_x: float = agent.velocity_x
	var velocity_y: float = agent.velocity_y
	var velocity_z: float = agent.velocity_z
	var goal_x: float = command.move_x * _speed
	var goal_z: float = command.move_z * _speed
	var change_x: float = goal_x - velocity_x
	var change_z: float = goal_z - velocity_z
	var length: float = sqrt(change_x * change_x + change_z * change_z)
	if length <= _speed_change_per_tick:
		velocity_x = goal_x
		velocity_z = goal_z
	else:
		velocity_x = velocity_x + change_x / length * _speed_change_per_tick
		velocity_z = velocity_z + change_z / length * _speed_change_per_tick
	var jumped: bool = command.jumps and agent.on_floor
	if jumped:
		velocity_y = _jump_speed
	var x: float = agent.x
	var y: float = agent.y
	var z: float = agent.z
	var target_x: float = x + velocity_x * _tick_sec
	var target_z: float = z + velocity_z * _tick_sec
	var target_y: float = y + (velocity_y - _half_fall_per_tick) * _tick_sec
	velocity_y = velocity_y - _fall_per_tick
	if (
		x < _low_x
		or x > _high_x
		or target_x < _low_x
		or target_x > _high_x
		or z < _low_z
		or z > _high_z
		or target_z < _low_z
		or target_z > _high_z
	):
		_find_near(x, z, target_x, target_z)
	var other_x: float = other.x
	var other_y: float = other.y
	var other_z: float = other.z
	# whether the other agent is in the way of a sweep, axis by axis
	var level: bool = other_y - _size < y and y < other_y + _size

	var end: float = target_x
	if end > _stop_x or end < -_stop_x:
		end = _stop_inside(x, end, _stop_x)
	for base: int in _near:
		if (
			_boxes[base + GROWN_LOW_Y] < y
			and y < _boxes[base + GROWN_HIGH_Y]
			and _boxes[base + GROWN_LOW_Z] < z
			and z < _boxes[base + GROWN_HIGH_Z]
		):
			end = _stop_before(
				x,
				end,
				_boxes[base + STOP_LOW_X],
				_boxes[base + STOP_HIGH_X],
				_boxes[base + MIDDLE_X]
			)
	if level and other_z - _size < z and z < other_z + _size:
		end = _stop_before(x, end, other_x - _size - _skin, other_x + _size + _skin, other_x)
	if end != target_x:
		velocity_x = 0.0
	x = end

	end = target_z
	if end > _stop_z or end < -_stop_z:
		end = _stop_inside(z, end, _stop_z)
	for base: int in _near:
		if (
			_boxes[base + GROWN_LOW_X] < x
			and x < _boxes[base + GROWN_HIGH_X]
			and _boxes[base + GROWN_LOW_Y] < y
			and y < _boxes[base + GROWN_HIGH_Y]
		):
			end = _stop_before(
				z,
				end,
				_boxes[base + STOP_LOW_Z],
				_boxes[base + STOP_HIGH_Z],
				_boxes[base + MIDDLE_Z]
			)
	if level and other_x - _size < x and x < other_x + _size:
		end = _stop_before(z, end, other_z - _size - _skin, other_z + _size + _skin, other_z)
	if end != target_z:
		velocity_z = 0.0
	z = end

	end = target_y
	if end < y and _stop_floor > end:
		end = _stop_floor if _stop_floor < y else y
	for base: int in _near:
		if (
			_boxes[base + GROWN_LOW_X] < x
			and x < _boxes[base + GROWN_HIGH_X]
			and _boxes[base + GROWN_LOW_Z] < z
			and z < _boxes[base + GROWN_HIGH_Z]
		):
			end = _stop_before(
				y,
				end,
				_boxes[base + STOP_LOW_Y],
				_boxes[base + STOP_HIGH_Y],
				_boxes[base + MIDDLE_Y]
			)
	var on_floor: bool = target_y < y and end != target_y
	if other_x - _size < x and x < other_x + _size and other_z - _size < z and z < other_z + _size:
		var beyond: float = _stop_before(
			y, end, other_y - _size - _skin, other_y + _size + _skin, other_y
		)
		if beyond != end:  # a head is not floor
			on_floor = false
			end = beyond
	if end != target_y:
		velocity_y = 0.0

	agent.x = x
	agent.y = end
	agent.z = z
	agent.velocity_x = velocity_x
	agent.velocity_y = velocity_y
	agent.velocity_z = velocity_z
	agent.on_floor = on_floor
	return jumped and end > y


func _turn(agent: TagAgent, want_x: float, want_z: float) -> void:
	var x: float = agent.forward_x
	var z: float = agent.forward_z
	if x * want_x + z * want_z >= _turn_cos:
		agent.forward_x = want_x
		agent.forward_z = want_z
		return
	var sine: float = _turn_sin
	if x * want_z - z * want_x < 0.0:
		sine = -sine
	var turned_x: float = x * _turn_cos - z * sine
	var turned_z: float = x * sine + z * _turn_cos
	var norm: float = sqrt(turned_x * turned_x + turned_z * turned_z)
	agent.forward_x = turned_x / norm
	agent.forward_z = turned_z / norm


## Only boxes that the hull of start and target touches can stop a sweep; those a little farther
## off are found as well, and serve for the ticks to come.
func _find_near(x: float, z: float, target_x: float, target_z: float) -> void:
	_low_x = minf(x, target_x) - NEAR_M
	_high_x = maxf(x, target_x) + NEAR_M
	_low_z = minf(z, target_z) - NEAR_M
	_high_z = maxf(z, target_z) + NEAR_M
	_near.clear()
	for index: int in _count:
		var base: int = index * TagLayout.STRIDE
		if (
			_boxes[base + STOP_LOW_X] <= _high_x
			and _low_x <= _boxes[base + STOP_HIGH_X]
			and _boxes[base + STOP_LOW_Z] <= _high_z
			and _low_z <= _boxes[base + STOP_HIGH_Z]
		):
			_near.append(base)


## Where a sweep from `start` towards `end` stops at an obstacle in its way.
static func _stop_before(start: float, end: float, low: float, high: float, middle: float) -> float:
	if end > start and start < middle and low < end:
		return low if low > start else start
	if end < start and start >= middle and high > end:
		return high if high < start else start
	return end


## The same for the two walls of an axis, which let nothing beyond -stop and stop.
static func _stop_inside(start: float, end: float, stop: float) -> float:
	if end > start and stop < end:
		return stop if stop > start else start
	if end < start and -stop > end:
		return -stop if -stop < start else start
	return end
