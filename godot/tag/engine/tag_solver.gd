class_name TagSolver
extends RefCounted
## One tick of movement, contact and facing, exactly as docs/physics.md specifies it.
##
## A GDScript float is a double; only + - * / sqrt and comparisons, in a fixed order, so that the
## embedded engine computes the same bits.

var _rules: TagRules
var _boxes: PackedFloat64Array
var _count: int
## Where the boxes begin that this tick can touch.
var _near: Array[int] = []


func _init(rules: TagRules, layout: TagLayout) -> void:
	_rules = rules
	_boxes = layout.numbers
	_count = layout.count


## Move one agent by one tick; returns whether it jumped and rose.
func move(agent: TagAgent, other: TagAgent, command: TagCommand) -> bool:
	var rules: TagRules = _rules
	_turn(agent, command)
	_accelerate(agent, command)
	var jumped: bool = command.jumps and agent.on_floor
	if jumped:
		agent.velocity_y = rules.jump_speed
	var x: float = agent.x
	var y: float = agent.y
	var z: float = agent.z
	var target_x: float = x + agent.velocity_x * rules.tick_sec
	var target_z: float = z + agent.velocity_z * rules.tick_sec
	var target_y: float = y + (agent.velocity_y - rules.half_fall_per_tick) * rules.tick_sec
	agent.velocity_y = agent.velocity_y - rules.fall_per_tick
	_find_near(x, y, z, target_x, target_y, target_z)
	var size: float = rules.size
	var other_x: float = other.x
	var other_y: float = other.y
	var other_z: float = other.z

	var end: float = _stop_inside(x, target_x, rules.stop_x)
	for base: int in _near:
		if (
			_boxes[base + 7] < y
			and y < _boxes[base + 10]
			and _boxes[base + 8] < z
			and z < _boxes[base + 11]
		):
			end = _stop_before(x, end, _boxes[base + 12], _boxes[base + 15], _boxes[base + 18])
	if other_y - size < y and y < other_y + size and other_z - size < z and z < other_z + size:
		end = _stop_before(
			x, end, other_x - size - rules.skin, other_x + size + rules.skin, other_x
		)
	if end != target_x:
		agent.velocity_x = 0.0
	x = end

	end = _stop_inside(z, target_z, rules.stop_z)
	for base: int in _near:
		if (
			_boxes[base + 6] < x
			and x < _boxes[base + 9]
			and _boxes[base + 7] < y
			and y < _boxes[base + 10]
		):
			end = _stop_before(z, end, _boxes[base + 14], _boxes[base + 17], _boxes[base + 20])
	if other_x - size < x and x < other_x + size and other_y - size < y and y < other_y + size:
		end = _stop_before(
			z, end, other_z - size - rules.skin, other_z + size + rules.skin, other_z
		)
	if end != target_z:
		agent.velocity_z = 0.0
	z = end

	end = target_y
	if end < y and rules.stop_floor > end:
		end = rules.stop_floor if rules.stop_floor < y else y
	for base: int in _near:
		if (
			_boxes[base + 6] < x
			and x < _boxes[base + 9]
			and _boxes[base + 8] < z
			and z < _boxes[base + 11]
		):
			end = _stop_before(y, end, _boxes[base + 13], _boxes[base + 16], _boxes[base + 19])
	agent.on_floor = target_y < y and end != target_y
	if other_x - size < x and x < other_x + size and other_z - size < z and z < other_z + size:
		var beyond: float = _stop_before(
			y, end, other_y - size - rules.skin, other_y + size + rules.skin, other_y
		)
		if beyond != end:  # a head is not floor
			agent.on_floor = false
			end = beyond
	if end != target_y:
		agent.velocity_y = 0.0

	agent.x = x
	agent.y = end
	agent.z = z
	return jumped and end > y


func _turn(agent: TagAgent, command: TagCommand) -> void:
	if not command.turns:
		return
	var x: float = agent.forward_x
	var z: float = agent.forward_z
	if x * command.want_x + z * command.want_z >= _rules.turn_cos:
		agent.forward_x = command.want_x
		agent.forward_z = command.want_z
		return
	var sine: float = _rules.turn_sin
	if x * command.want_z - z * command.want_x < 0.0:
		sine = -sine
	var turned_x: float = x * _rules.turn_cos - z * sine
	var turned_z: float = x * sine + z * _rules.turn_cos
	var norm: float = sqrt(turned_x * turned_x + turned_z * turned_z)
	agent.forward_x = turned_x / norm
	agent.forward_z = turned_z / norm


func _accelerate(agent: TagAgent, command: TagCommand) -> void:
	var goal_x: float = command.move_x * _rules.speed
	var goal_z: float = command.move_z * _rules.speed
	var change_x: float = goal_x - agent.velocity_x
	var change_z: float = goal_z - agent.velocity_z
	var length: float = sqrt(change_x * change_x + change_z * change_z)
	if length <= _rules.speed_change_per_tick:
		agent.velocity_x = goal_x
		agent.velocity_z = goal_z
	else:
		var most: float = _rules.speed_change_per_tick
		agent.velocity_x = agent.velocity_x + change_x / length * most
		agent.velocity_z = agent.velocity_z + change_z / length * most


## Only boxes that the hull of start and target touches can stop a sweep.
func _find_near(
	x: float, y: float, z: float, target_x: float, target_y: float, target_z: float
) -> void:
	_near.clear()
	var low_x: float = x if x < target_x else target_x
	var high_x: float = target_x if x < target_x else x
	var low_y: float = y if y < target_y else target_y
	var high_y: float = target_y if y < target_y else y
	var low_z: float = z if z < target_z else target_z
	var high_z: float = target_z if z < target_z else z
	for index: int in _count:
		var base: int = index * TagLayout.STRIDE
		if (
			_boxes[base + 12] <= high_x
			and low_x <= _boxes[base + 15]
			and _boxes[base + 14] <= high_z
			and low_z <= _boxes[base + 17]
			and _boxes[base + 13] <= high_y
			and low_y <= _boxes[base + 16]
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
