class_name TagEyes
extends RefCounted
## What an agent sees: a level fan of rays and one aimed ray, exactly as docs/physics.md says.

## Smallest component of a ray's direction.
const TINY: float = 1.0 / 1000000000.0
## Far above rounding: a box is skipped only when it is out of sight beyond doubt.
const CULL_MARGIN: float = 0.000001
const HEAD_SIZE: int = 18
## Where an observation says whether the opponent is seen.
const VISIBLE: int = 13

## Distance to the nearest solid and to the opponent along each ray, INF where there is none.
var wall: PackedFloat64Array = []
var body: PackedFloat64Array = []

var _rules: TagRules
var _boxes: PackedFloat64Array
var _count: int
var _slope_x: PackedFloat64Array = []
var _slope_z: PackedFloat64Array = []


func _init(rules: TagRules, layout: TagLayout) -> void:
	_rules = rules
	_boxes = layout.numbers
	_count = layout.count
	wall.resize(rules.rays)
	_slope_x.resize(rules.rays)
	_slope_z.resize(rules.rays)
	body.resize(rules.rays)


## Look, remember, and write the observation (a PackedFloat32Array is shared, so it is returned).
func observe(
	agent: TagAgent, other: TagAgent, is_seeker: bool, tick: int, out: PackedFloat32Array
) -> PackedFloat32Array:
	cast_fan(agent, other)
	var visible: bool = _write_rays(out) or sees(agent, other)
	if visible:
		agent.seen_x = other.x
		agent.seen_y = other.y
		agent.seen_z = other.z
		agent.seen_tick = tick
	_write_head(agent, is_seeker, visible, tick, out)
	return out


## Fill `wall` and `body`.
func cast_fan(agent: TagAgent, other: TagAgent) -> void:
	var x: float = agent.x
	var y: float = agent.y + _rules.eye_height
	var z: float = agent.z
	_cast_at_walls(x, z, agent.forward_x, agent.forward_z)
	body.fill(INF)
	for index: int in _count:
		var base: int = index * TagLayout.STRIDE
		if _boxes[base + 1] <= y and y <= _boxes[base + 4]:
			wall = _cast_at(
				_boxes[base] - x,
				_boxes[base + 3] - x,
				_boxes[base + 2] - z,
				_boxes[base + 5] - z,
				agent,
				wall
			)
	var half: float = _rules.half
	if other.y - half <= y and y <= other.y + half:
		body = _cast_at(
			other.x - half - x,
			other.x + half - x,
			other.z - half - z,
			other.z + half - z,
			agent,
			body
		)


## Whether the opponent's centre is in the cone, in range, and not behind a box.
func sees(agent: TagAgent, other: TagAgent) -> bool:
	var x: float = agent.x
	var y: float = agent.y + _rules.eye_height
	var z: float = agent.z
	var along_x: float = other.x - x
	var along_y: float = other.y - y
	var along_z: float = other.z - z
	var flat_square: float = along_x * along_x + along_z * along_z
	if flat_square + along_y * along_y > _rules.eye_range * _rules.eye_range:
		return false
	var ahead: float = agent.forward_x * along_x + agent.forward_z * along_z
	if ahead < _rules.cone_cos * sqrt(flat_square):
		return false
	along_x = TINY if absf(along_x) < TINY else along_x
	along_y = TINY if absf(along_y) < TINY else along_y
	along_z = TINY if absf(along_z) < TINY else along_z
	for index: int in _count:
		if _is_between(index * TagLayout.STRIDE, x, y, z, along_x, along_y, along_z):
			return false
	return true


func _cast_at_walls(x: float, z: float, forward_x: float, forward_z: float) -> void:
	var fan_cos: PackedFloat64Array = _rules.fan_cos
	var fan_sin: PackedFloat64Array = _rules.fan_sin
	var west: float = -_rules.wall_x - x
	var east: float = _rules.wall_x - x
	var north: float = -_rules.wall_z - z
	var south: float = _rules.wall_z - z
	for ray: int in _rules.rays:
		var along_x: float = forward_x * fan_cos[ray] - forward_z * fan_sin[ray]
		var along_z: float = forward_x * fan_sin[ray] + forward_z * fan_cos[ray]
		along_x = TINY if absf(along_x) < TINY else along_x
		along_z = TINY if absf(along_z) < TINY else along_z
		var per_x: float = 1.0 / along_x
		var per_z: float = 1.0 / along_z
		_slope_x[ray] = per_x
		_slope_z[ray] = per_z
		# the far wall is the one ahead, so the larger of the two products
		var far_x: float = east * per_x if per_x > 0.0 else west * per_x
		var far_z: float = south * per_z if per_z > 0.0 else north * per_z
		wall[ray] = far_x if far_x < far_z else far_z


## Shorten the rays in `hit` that meet a box, given relative to the eye; returns them.
func _cast_at(
	low_x: float,
	high_x: float,
	low_z: float,
	high_z: float,
	agent: TagAgent,
	hit: PackedFloat64Array
) -> PackedFloat64Array:
	if _is_out_of_sight(low_x, high_x, low_z, high_z, agent):
		return hit
	for ray: int in _rules.rays:
		var per_x: float = _slope_x[ray]
		var per_z: float = _slope_z[ray]
		var near: float = low_x * per_x
		var far: float = high_x * per_x
		if per_x < 0.0:
			near = high_x * per_x
			far = low_x * per_x
		var near_z: float = low_z * per_z
		var far_z: float = high_z * per_z
		if per_z < 0.0:
			near_z = high_z * per_z
			far_z = low_z * per_z
		if near_z > near:
			near = near_z
		if far_z < far:
			far = far_z
		if near <= far and near >= 0.0 and near < hit[ray]:
			hit[ray] = near
	return hit


## Whether no ray of the fan can reach a box: beyond the range, or beside the cone.
func _is_out_of_sight(
	low_x: float, high_x: float, low_z: float, high_z: float, agent: TagAgent
) -> bool:
	var middle_x: float = (low_x + high_x) * 0.5
	var middle_z: float = (low_z + high_z) * 0.5
	var extent_x: float = (high_x - low_x) * 0.5
	var extent_z: float = (high_z - low_z) * 0.5
	var out_x: float = maxf(absf(middle_x) - extent_x, 0.0)
	var out_z: float = maxf(absf(middle_z) - extent_z, 0.0)
	var reach: float = _rules.eye_range + CULL_MARGIN
	if out_x * out_x + out_z * out_z > reach * reach:
		return true
	var edge_cos: float = _rules.fan_cos[0]
	var edge_sin: float = _rules.fan_sin[0]
	var left_x: float = agent.forward_x * edge_cos - agent.forward_z * edge_sin
	var left_z: float = agent.forward_x * edge_sin + agent.forward_z * edge_cos
	var spread: float = absf(left_x) * extent_z + absf(left_z) * extent_x
	if left_x * middle_z - left_z * middle_x + spread < -CULL_MARGIN:
		return true
	edge_cos = _rules.fan_cos[_rules.rays - 1]
	edge_sin = _rules.fan_sin[_rules.rays - 1]
	var right_x: float = agent.forward_x * edge_cos - agent.forward_z * edge_sin
	var right_z: float = agent.forward_x * edge_sin + agent.forward_z * edge_cos
	spread = absf(right_x) * extent_z + absf(right_z) * extent_x
	return middle_x * right_z - middle_z * right_x + spread < -CULL_MARGIN


func _is_between(
	base: int, x: float, y: float, z: float, along_x: float, along_y: float, along_z: float
) -> bool:
	var one: float = (_boxes[base] - x) / along_x
	var two: float = (_boxes[base + 3] - x) / along_x
	var near: float = one if one < two else two
	var far: float = two if one < two else one
	one = (_boxes[base + 1] - y) / along_y
	two = (_boxes[base + 4] - y) / along_y
	var near_y: float = one if one < two else two
	var far_y: float = two if one < two else one
	near = near if near > near_y else near_y
	far = far if far < far_y else far_y
	one = (_boxes[base + 2] - z) / along_z
	two = (_boxes[base + 5] - z) / along_z
	var near_z: float = one if one < two else two
	var far_z: float = two if one < two else one
	near = near if near > near_z else near_z
	far = far if far < far_z else far_z
	return near <= far and far >= 0.0 and near <= 1.0


func _write_rays(out: PackedFloat32Array) -> bool:
	var visible: bool = false
	var eye_range: float = _rules.eye_range
	var place: int = HEAD_SIZE
	for ray: int in _rules.rays:
		var solid: float = wall[ray]
		var opponent: float = body[ray]
		if opponent < solid and opponent <= eye_range:
			visible = true
			out[place] = opponent / eye_range
			out[place + 1] = 0.0
			out[place + 2] = 1.0
		elif solid <= eye_range:
			out[place] = solid / eye_range
			out[place + 1] = 1.0
			out[place + 2] = 0.0
		else:
			out[place] = 1.0
			out[place + 1] = 0.0
			out[place + 2] = 0.0
		place += 3
	return visible


func _write_head(
	agent: TagAgent, is_seeker: bool, visible: bool, tick: int, out: PackedFloat32Array
) -> void:
	var metres: float = _rules.position_scale
	var pace: float = _rules.velocity_scale
	var limit: float = _rules.limit_ticks
	out[0] = agent.x / metres
	out[1] = agent.y / metres
	out[2] = agent.z / metres
	out[3] = agent.velocity_x / pace
	out[4] = agent.velocity_y / pace
	out[5] = agent.velocity_z / pace
	out[6] = agent.forward_x
	out[7] = agent.forward_z
	out[8] = 1.0 if is_seeker else 0.0
	out[9] = 0.0 if is_seeker else 1.0
	out[10] = 1.0 if agent.on_floor else 0.0
	out[11] = 1.0 if agent.immune_ticks > 0 else 0.0
	out[12] = (_rules.limit_ticks - tick) / limit
	out[VISIBLE] = 1.0 if visible else 0.0
	var known: bool = agent.seen_tick >= 0
	out[14] = (agent.seen_x - agent.x) / metres if known else 0.0
	out[15] = (agent.seen_y - agent.y) / metres if known else 0.0
	out[16] = (agent.seen_z - agent.z) / metres if known else 0.0
	out[17] = (tick - agent.seen_tick) / limit if known else 1.0
