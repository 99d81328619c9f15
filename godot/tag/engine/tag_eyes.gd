class_name TagEyes
extends RefCounted
## What an agent sees: a level fan of rays and one aimed ray, exactly as docs/physics.md says.

## Numbers of a box in `_solids`.
enum Solid { LOW_X, HIGH_X, LOW_Y, HIGH_Y, LOW_Z, HIGH_Z }

## Smallest component of a ray's direction.
const TINY: float = 1.0 / 1000000000.0
## Far above rounding: what is farther than this outside the fan is not seen.
const OUTSIDE_M: float = 0.000001
const SOLID_SIZE: int = 6

## Distance to the nearest solid and to the opponent along each ray, INF where there is none.
var wall: PackedFloat64Array = []
var body: PackedFloat64Array = []

# Copies of what the rules say: a property of another object takes as long as three products.
var _rules: TagRules
var _rays: int
var _rays_per_radian: float
var _rays_per_turn: float
var _middle_ray: float
## Around the corners of a box, in rays; far above rounding.
var _margin: float
var _fan_cos: PackedFloat64Array
var _fan_sin: PackedFloat64Array
var _eye_height: float
var _eye_range: float
var _wall_x: float
var _wall_z: float
var _half: float
## The boxes, and the opponent behind them.
var _solids: PackedFloat64Array = []
## Where the opponent begins in `_solids`.
var _opponent: int
var _slope_x: PackedFloat64Array = []
var _slope_z: PackedFloat64Array = []


func _init(rules: TagRules, layout: TagLayout) -> void:
	_rules = rules
	_rays = rules.rays
	_rays_per_radian = (_rays - 1.0) / TagSeries.radians(rules.cone_deg)
	_rays_per_turn = TAU * _rays_per_radian
	_middle_ray = 0.5 * (_rays - 1.0)
	_margin = maxf(0.001, 0.000001 * _rays_per_radian)
	_fan_cos = rules.fan_cos
	_fan_sin = rules.fan_sin
	_eye_height = rules.eye_height
	_eye_range = rules.eye_range
	_wall_x = rules.wall_x
	_wall_z = rules.wall_z
	_half = rules.half
	for index: int in layout.count:
		var base: int = index * TagLayout.STRIDE
		for axis: int in 3:
			_solids.append(layout.numbers[base + TagLayout.Part.LOW + axis])
			_solids.append(layout.numbers[base + TagLayout.Part.HIGH + axis])
	_opponent = _solids.size()
	_solids.resize(_opponent + SOLID_SIZE)
	wall.resize(_rays)
	body.resize(_rays)
	_slope_x.resize(_rays)
	_slope_z.resize(_rays)


## Look, remember, and write the observation (a PackedFloat32Array is shared, so it is returned).
func observe(
	agent: TagAgent, other: TagAgent, is_seeker: bool, tick: int, out: PackedFloat32Array
) -> PackedFloat32Array:
	var closed: bool = is_seeker and tick < _rules.head_start_ticks
	if closed:
		wall.fill(INF)
		body.fill(INF)
	else:
		cast_fan(agent, other)
	var visible: bool = _write_rays(out) or (not closed and sees(agent, other))
	if visible or (not is_seeker and hears(agent, other)):
		agent.seen_x = other.x
		agent.seen_y = other.y
		agent.seen_z = other.z
		agent.seen_tick = tick
	_write_head(agent, is_seeker, visible, tick, out)
	return out


## Whether the opponent's centre is within hearing, behind a box or not.
func hears(agent: TagAgent, other: TagAgent) -> bool:
	var x: float = other.x - agent.x
	var y: float = other.y - agent.y
	var z: float = other.z - agent.z
	return x * x + y * y + z * z < _rules.hearing_square


## Fill `wall` and `body`.
func cast_fan(agent: TagAgent, other: TagAgent) -> void:
	var x: float = agent.x
	var y: float = agent.y + _eye_height
	var z: float = agent.z
	var forward_x: float = agent.forward_x
	var forward_z: float = agent.forward_z
	_cast_at_walls(x, z, forward_x, forward_z)
	body.fill(INF)
	_put_opponent(other)
	# inward normals of the fan's two edges: of a box outside, the corner farthest inside is too
	var edge: int = _rays - 1
	var left_x: float = -forward_x * _fan_sin[0] - forward_z * _fan_cos[0]
	var left_z: float = forward_x * _fan_cos[0] - forward_z * _fan_sin[0]
	var right_x: float = forward_x * _fan_sin[edge] + forward_z * _fan_cos[edge]
	var right_z: float = forward_z * _fan_sin[edge] - forward_x * _fan_cos[edge]
	var left_least: float = left_x * x + left_z * z - OUTSIDE_M
	var right_least: float = right_x * x + right_z * z - OUTSIDE_M
	var left_at: int = Solid.HIGH_X if left_x > 0.0 else Solid.LOW_X
	var left_at_z: int = Solid.HIGH_Z if left_z > 0.0 else Solid.LOW_Z
	var right_at: int = Solid.HIGH_X if right_x > 0.0 else Solid.LOW_X
	var right_at_z: int = Solid.HIGH_Z if right_z > 0.0 else Solid.LOW_Z
	for base: int in range(0, _opponent + 1, SOLID_SIZE):
		if (
			y < _solids[base + Solid.LOW_Y]
			or y > _solids[base + Solid.HIGH_Y]
			or left_x * _solids[base + left_at] + left_z * _solids[base + left_at_z] < left_least
			or (
				right_x * _solids[base + right_at] + right_z * _solids[base + right_at_z]
				< right_least
			)
		):
			continue
		_cast_at(
			_solids[base] - x,
			_solids[base + Solid.HIGH_X] - x,
			_solids[base + Solid.LOW_Z] - z,
			_solids[base + Solid.HIGH_Z] - z,
			forward_x,
			forward_z,
			body if base == _opponent else wall
		)


## Whether the opponent's centre is in the cone, in range, and not behind a box.
func sees(agent: TagAgent, other: TagAgent) -> bool:
	var x: float = agent.x
	var y: float = agent.y + _eye_height
	var z: float = agent.z
	var along_x: float = other.x - x
	var along_y: float = other.y - y
	var along_z: float = other.z - z
	var flat_square: float = along_x * along_x + along_z * along_z
	if flat_square + along_y * along_y > _eye_range * _eye_range:
		return false
	var ahead: float = agent.forward_x * along_x + agent.forward_z * along_z
	if ahead < _rules.cone_cos * sqrt(flat_square):
		return false
	along_x = TINY if absf(along_x) < TINY else along_x
	along_y = TINY if absf(along_y) < TINY else along_y
	along_z = TINY if absf(along_z) < TINY else along_z
	# a box that one axis alone shows to be behind either end is not in between
	for base: int in range(0, _opponent, SOLID_SIZE):
		var near: float = (_solids[base] - x) / along_x
		var far: float = (_solids[base + Solid.HIGH_X] - x) / along_x
		if along_x < 0.0:
			var swapped: float = near
			near = far
			far = swapped
		if far < 0.0 or near > 1.0:
			continue
		var near_z: float = (_solids[base + Solid.LOW_Z] - z) / along_z
		var far_z: float = (_solids[base + Solid.HIGH_Z] - z) / along_z
		if along_z < 0.0:
			var swapped: float = near_z
			near_z = far_z
			far_z = swapped
		if far_z < 0.0 or near_z > 1.0 or near_z > far or far_z < near:
			continue
		near = near if near > near_z else near_z
		far = far if far < far_z else far_z
		var near_y: float = (_solids[base + Solid.LOW_Y] - y) / along_y
		var far_y: float = (_solids[base + Solid.HIGH_Y] - y) / along_y
		if along_y < 0.0:
			var swapped: float = near_y
			near_y = far_y
			far_y = swapped
		near = near if near > near_y else near_y
		far = far if far < far_y else far_y
		if near <= far and far >= 0.0 and near <= 1.0:
			return false
	return true


## Find the slope of every ray, and how far along it the walls are.
func _cast_at_walls(x: float, z: float, forward_x: float, forward_z: float) -> void:
	var west: float = -_wall_x - x
	var east: float = _wall_x - x
	var north: float = -_wall_z - z
	var south: float = _wall_z - z
	for ray: int in _rays:
		var turn_cos: float = _fan_cos[ray]
		var turn_sin: float = _fan_sin[ray]
		var along_x: float = forward_x * turn_cos - forward_z * turn_sin
		var along_z: float = forward_x * turn_sin + forward_z * turn_cos
		# the far wall is the one ahead, so the larger of the two products
		var ahead_x: float = east
		if along_x < TINY:
			if along_x > -TINY:
				along_x = TINY
			else:
				ahead_x = west
		var ahead_z: float = south
		if along_z < TINY:
			if along_z > -TINY:
				along_z = TINY
			else:
				ahead_z = north
		var per_x: float = 1.0 / along_x
		var per_z: float = 1.0 / along_z
		_slope_x[ray] = per_x
		_slope_z[ray] = per_z
		var far_x: float = ahead_x * per_x
		var far_z: float = ahead_z * per_z
		wall[ray] = far_x if far_x < far_z else far_z


## Shorten the rays in `hit` that meet a box, given relative to the eye.
##
## Every ray between the corners at which the box begins and ends for the eye meets a face that is
## turned to it. Only rays within a margin of these corners need the whole test.
func _cast_at(
	low_x: float,
	high_x: float,
	low_z: float,
	high_z: float,
	forward_x: float,
	forward_z: float,
	hit: PackedFloat64Array
) -> void:
	# the faces that are turned to the eye, 0 where none is; the corners, by rising angle
	var face_x: float = low_x if low_x > 0.0 else (high_x if high_x < 0.0 else 0.0)
	var face_z: float = low_z if low_z > 0.0 else (high_z if high_z < 0.0 else 0.0)
	var first_x: float = face_x
	var first_z: float = face_z
	var last_x: float = face_x
	var last_z: float = face_z
	if face_z > 0.0:
		first_x = high_x
		last_x = low_x
	elif face_z < 0.0:
		first_x = low_x
		last_x = high_x
	if face_x > 0.0:
		first_z = low_z
		last_z = high_z
	elif face_x < 0.0:
		first_z = high_z
		last_z = low_z
	var first: float = (
		_middle_ray
		+ (
			_rays_per_radian
			* atan2(
				forward_x * first_z - forward_z * first_x, forward_x * first_x + forward_z * first_z
			)
		)
	)
	var last: float = (
		_middle_ray
		+ (
			_rays_per_radian
			* atan2(
				forward_x * last_z - forward_z * last_x, forward_x * last_x + forward_z * last_z
			)
		)
	)
	if first > last:  # it reaches round behind
		if last < -_margin:
			last += _rays_per_turn
		else:
			first -= _rays_per_turn
	var ray: int = maxi(0, ceili(first - _margin))
	var end: int = mini(_rays, floori(last + _margin) + 1)
	if (face_x == 0.0 and face_z == 0.0) or last - first > 0.5 * _rays_per_turn - 4.0 * _margin:
		_test(0, _rays, low_x, high_x, low_z, high_z, hit)
		return
	var sure: int = mini(end, ceili(first + _margin))
	if ray < sure:
		_test(ray, sure, low_x, high_x, low_z, high_z, hit)
		ray = sure
	sure = maxi(ray, floori(last - _margin) + 1)
	if sure < end:
		_test(sure, end, low_x, high_x, low_z, high_z, hit)
		end = sure
	if face_z == 0.0:
		while ray < end:
			var near: float = face_x * _slope_x[ray]
			if near < hit[ray]:
				hit[ray] = near
			ray += 1
	elif face_x == 0.0:
		while ray < end:
			var near: float = face_z * _slope_z[ray]
			if near < hit[ray]:
				hit[ray] = near
			ray += 1
	else:
		while ray < end:
			var near: float = face_x * _slope_x[ray]
			var near_z: float = face_z * _slope_z[ray]
			if near_z > near:
				near = near_z
			if near < hit[ray]:
				hit[ray] = near
			ray += 1


## The same for the rays from `first` on and before `end`, wherever the box is.
func _test(
	first: int,
	end: int,
	low_x: float,
	high_x: float,
	low_z: float,
	high_z: float,
	hit: PackedFloat64Array
) -> void:
	for ray: int in range(first, end):
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
		if near_z >= near:
			near = near_z
		if far_z <= far:
			far = far_z
		if near <= far and near >= 0.0 and near < hit[ray]:
			hit[ray] = near


func _put_opponent(other: TagAgent) -> void:
	var x: float = other.x
	var y: float = other.y
	var z: float = other.z
	_solids[_opponent] = x - _half
	_solids[_opponent + Solid.HIGH_X] = x + _half
	_solids[_opponent + Solid.LOW_Y] = y - _half
	_solids[_opponent + Solid.HIGH_Y] = y + _half
	_solids[_opponent + Solid.LOW_Z] = z - _half
	_solids[_opponent + Solid.HIGH_Z] = z + _half


func _write_rays(out: PackedFloat32Array) -> bool:
	var visible: bool = false
	var eye_range: float = _eye_range
	var place: int = TagObservation.rays
	for ray: int in _rays:
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
		place += TagObservation.RAY_CHANNELS
	return visible


func _write_head(
	agent: TagAgent, is_seeker: bool, visible: bool, tick: int, out: PackedFloat32Array
) -> void:
	var metres: float = _rules.position_scale
	var pace: float = _rules.velocity_scale
	var limit: float = _rules.limit_ticks
	var at: int = TagObservation.position
	out[at] = agent.x / metres
	out[at + 1] = agent.y / metres
	out[at + 2] = agent.z / metres
	at = TagObservation.velocity
	out[at] = agent.velocity_x / pace
	out[at + 1] = agent.velocity_y / pace
	out[at + 2] = agent.velocity_z / pace
	at = TagObservation.forward
	out[at] = agent.forward_x
	out[at + 1] = agent.forward_z
	out[TagObservation.is_seeker] = 1.0 if is_seeker else 0.0
	out[TagObservation.is_hider] = 0.0 if is_seeker else 1.0
	out[TagObservation.on_floor] = 1.0 if agent.on_floor else 0.0
	out[TagObservation.immune] = 1.0 if agent.immune_ticks > 0 else 0.0
	out[TagObservation.time_left] = (_rules.limit_ticks - tick) / limit
	out[TagObservation.opponent_visible] = 1.0 if visible else 0.0
	var known: bool = agent.seen_tick >= 0
	at = TagObservation.last_seen_relative
	out[at] = (agent.seen_x - agent.x) / metres if known else 0.0
	out[at + 1] = (agent.seen_y - agent.y) / metres if known else 0.0
	out[at + 2] = (agent.seen_z - agent.z) / metres if known else 0.0
	out[TagObservation.last_seen_age] = (tick - agent.seen_tick) / limit if known else 1.0
