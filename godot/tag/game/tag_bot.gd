class_name TagBot
extends TagPlayer
## Scripted players: pure functions of the observation, the same actions as in Python.

enum Kind { RANDOM, CHASER, EVADER }

const NAMES: Dictionary[String, Kind] = {
	"bot:random": Kind.RANDOM, "bot:chaser": Kind.CHASER, "bot:evader": Kind.EVADER
}
const DIRECTIONS: int = 16
const HORIZON: int = 6
const IMAGINED_SEC: float = 0.125
const COVER: float = 0.5
const LOOK_BACK_SEC: float = 1.0
## Speed of the chaser, as a share of full speed.
const CHASE_EFFORT: float = 0.93
## How long the evader runs from where it last saw the seeker.
const FRESH_SEC: float = 3.0

var kind: Kind

var _rules: TagRules
var _compass_x: PackedFloat64Array = []
var _compass_z: PackedFloat64Array = []
## Direction and distance of the rays that hit something solid.
var _solid_x: PackedFloat64Array = []
var _solid_z: PackedFloat64Array = []
var _solid_far: PackedFloat64Array = []
var _forward_x: float
var _forward_z: float
var _best_x: float
var _best_z: float


func _init(which: Kind, rules: TagRules) -> void:
	kind = which
	_rules = rules
	for k: int in DIRECTIONS:
		var turn: float = TagSeries.radians(360.0 * k / DIRECTIONS - 180.0)
		_compass_x.append(TagSeries.cosine(turn))
		_compass_z.append(TagSeries.sine(turn))


func act(obs: PackedFloat32Array) -> PackedFloat32Array:
	if kind == Kind.RANDOM:
		return _act_randomly(obs)
	_forward_x = obs[TagObservation.forward]
	_forward_z = obs[TagObservation.forward + 1]
	_find_solid(obs)
	return _chase(obs) if kind == Kind.CHASER else _evade(obs)


## Uniform actions, drawn from the bits of the observation itself.
func _act_randomly(obs: PackedFloat32Array) -> PackedFloat32Array:
	var bits: PackedByteArray = obs.slice(0, TagObservation.time_left + 1).to_byte_array()
	var role: int = 1 if obs[TagObservation.is_seeker] > 0.5 else 0
	var words: PackedInt64Array = TagStreams.threefry(
		bits.decode_u32(4 * TagObservation.time_left),
		role,
		bits.decode_u32(4 * TagObservation.position),
		bits.decode_u32(4 * TagObservation.position + 8)
	)
	var more: PackedInt64Array = TagStreams.threefry(
		words[0], words[1], TagStreams.Purpose.ACTION, role
	)
	return PackedFloat32Array(
		[
			words[0] / TagStreams.WORDS * 2.0 - 1.0,
			words[1] / TagStreams.WORDS * 2.0 - 1.0,
			more[0] / TagStreams.WORDS * 2.0 - 1.0
		]
	)


func _find_solid(obs: PackedFloat32Array) -> void:
	_solid_x.clear()
	_solid_z.clear()
	_solid_far.clear()
	for ray: int in _rules.rays:
		var at: int = TagObservation.rays + TagObservation.RAY_CHANNELS * ray
		if obs[at + 1] > 0.5:
			var turn_cos: float = _rules.fan_cos[ray]
			var turn_sin: float = _rules.fan_sin[ray]
			_solid_x.append(_forward_x * turn_cos - _forward_z * turn_sin)
			_solid_z.append(_forward_x * turn_sin + _forward_z * turn_cos)
			_solid_far.append(obs[at] * _rules.eye_range)


## How far the cube could go in a direction before it hits something solid that its rays show.
func _clearance(along_x: float, along_z: float) -> float:
	var clear: float = _rules.eye_range
	var width: float = 0.7 * _rules.size
	for ray: int in _solid_far.size():
		var ahead: float = _solid_far[ray] * (_solid_x[ray] * along_x + _solid_z[ray] * along_z)
		if ahead > 0.0 and ahead < clear:
			var aside: float = _solid_far[ray] * (_solid_x[ray] * along_z - _solid_z[ray] * along_x)
			if absf(aside) < width:
				clear = ahead
	return clear


## Find the direction in the fan that leads best to a goal around obstacles.
func _steer(goal_x: float, goal_z: float, distance: float) -> void:
	var want: float = distance if distance < 4.0 else 4.0
	_best_x = goal_x
	_best_z = goal_z
	if _forward_x * goal_x + _forward_z * goal_z < _rules.fan_cos[0]:
		return  # out of sight: turn to it first
	var clear: float = _clearance(goal_x, goal_z)
	var best: float = 1.0 + (clear if clear < want else want) / want
	for ray: int in range(0, _rules.rays, 3):
		var along_x: float = _forward_x * _rules.fan_cos[ray] - _forward_z * _rules.fan_sin[ray]
		var along_z: float = _forward_x * _rules.fan_sin[ray] + _forward_z * _rules.fan_cos[ray]
		clear = _clearance(along_x, along_z)
		var score: float = (
			along_x * goal_x + along_z * goal_z + (clear if clear < want else want) / want
		)
		if score > best:
			best = score
			_best_x = along_x
			_best_z = along_z


## Find where there is most room, in a gentle curve.
func _roam() -> void:
	var best: float = -1.0
	_best_x = -_forward_x
	_best_z = -_forward_z
	for ray: int in range(0, _rules.rays, 3):
		var along_x: float = _forward_x * _rules.fan_cos[ray] - _forward_z * _rules.fan_sin[ray]
		var along_z: float = _forward_x * _rules.fan_sin[ray] + _forward_z * _rules.fan_cos[ray]
		var score: float = _clearance(along_x, along_z) + _rules.fan_cos[ray] + _rules.fan_sin[ray]
		if score > best and score > 3.0:
			best = score
			_best_x = along_x
			_best_z = along_z


## Chase the opponent if it is visible, else go to where it was last seen, else search.
func _chase(obs: PackedFloat32Array) -> PackedFloat32Array:
	var visible: bool = obs[TagObservation.opponent_visible] > 0.5
	var seek_x: float = obs[TagObservation.last_seen_relative] * _rules.position_scale
	var seek_y: float = obs[TagObservation.last_seen_relative + 1] * _rules.position_scale
	var seek_z: float = obs[TagObservation.last_seen_relative + 2] * _rules.position_scale
	var distance: float = sqrt(seek_x * seek_x + seek_z * seek_z)
	var velocity_x: float = obs[TagObservation.velocity] * _rules.velocity_scale
	var velocity_z: float = obs[TagObservation.velocity + 2] * _rules.velocity_scale
	var slow: bool = velocity_x * velocity_x + velocity_z * velocity_z < 1.0
	var elapsed: float = (1.0 - obs[TagObservation.time_left]) * _rules.limit_sec
	var age: float = obs[TagObservation.last_seen_age] * _rules.limit_sec
	var never: bool = obs[TagObservation.last_seen_age] > 0.999
	if (never and elapsed < 0.6) or (not visible and distance < 1.5 and age < 1.0):
		return _look_around()
	if never or (not visible and (distance < 1.5 or age > 3.0)):
		_roam()
		return PackedFloat32Array([_best_x, _best_z, 1.0 if slow and elapsed > 1.0 else 0.0])
	if distance < 0.001:
		return PackedFloat32Array([_forward_x, _forward_z, 0.0])
	var goal_x: float = seek_x / distance
	var goal_z: float = seek_z / distance
	if seek_y > 0.5 and distance < 4.0:  # it stands on something: up there
		var leaps: bool = distance < 3.0 and obs[TagObservation.on_floor] > 0.5
		return PackedFloat32Array([goal_x, goal_z, 1.0 if leaps else 0.0])
	_steer(goal_x, goal_z, distance)
	var stuck: bool = slow and distance > 2.0 and elapsed > 0.5
	return PackedFloat32Array(
		[_best_x * CHASE_EFFORT, _best_z * CHASE_EFFORT, 1.0 if stuck else 0.0]
	)


## Run in the direction that keeps the seeker farthest if it runs straight at the agent.
func _evade(obs: PackedFloat32Array) -> PackedFloat32Array:
	var threat_x: float = obs[TagObservation.last_seen_relative] * _rules.position_scale
	var threat_z: float = obs[TagObservation.last_seen_relative + 2] * _rules.position_scale
	var distance: float = sqrt(threat_x * threat_x + threat_z * threat_z)
	var age: float = obs[TagObservation.last_seen_age] * _rules.limit_sec
	if age > FRESH_SEC or distance < 0.001:
		return _look_around()
	if obs[TagObservation.opponent_visible] < 0.5 and age > LOOK_BACK_SEC and distance > 4.0:
		return PackedFloat32Array([threat_x / distance * 0.15, threat_z / distance * 0.15, 0.0])
	# out of sight the seeker may have followed: as far as it could run, up to 2 m from here
	var come: float = _rules.speed * age
	if come >= distance - 2.0:
		come = distance - 2.0
	if come > 0.0:
		threat_x = threat_x - threat_x / distance * come
		threat_z = threat_z - threat_z / distance * come
	var best: float = -1000000000.0
	var best_room: float = 0.0
	_best_x = 0.0
	_best_z = 0.0
	for k: int in DIRECTIONS:
		var room: float = _room(obs, _compass_x[k], _compass_z[k])
		var score: float = _imagine(obs, _compass_x[k], _compass_z[k], room, threat_x, threat_z)
		if score > best:
			best = score
			best_room = room
			_best_x = _compass_x[k]
			_best_z = _compass_z[k]
	var jumps: bool = obs[TagObservation.on_floor] > 0.5 and (best_room < 0.8 or distance < 1.3)
	return PackedFloat32Array([_best_x, _best_z, 1.0 if jumps else 0.0])


func _look_around() -> PackedFloat32Array:
	return PackedFloat32Array([-_forward_z * 0.3, _forward_x * 0.3, 0.0])


## Score of running in one direction while the seeker runs straight at the agent.
func _imagine(
	obs: PackedFloat32Array,
	along_x: float,
	along_z: float,
	room: float,
	threat_x: float,
	threat_z: float
) -> float:
	var x: float = 0.0
	var z: float = 0.0
	var ran: float = 0.0
	var velocity_x: float = obs[TagObservation.velocity] * _rules.velocity_scale
	var velocity_z: float = obs[TagObservation.velocity + 2] * _rules.velocity_scale
	var closest: float = 100.0
	var apart: float = 0.0
	var most: float = _rules.acceleration * IMAGINED_SEC
	for _step: int in HORIZON:
		var change_x: float = along_x * _rules.speed - velocity_x
		var change_z: float = along_z * _rules.speed - velocity_z
		var change: float = sqrt(change_x * change_x + change_z * change_z)
		var share: float = most / change if change > most else 1.0
		velocity_x = velocity_x + change_x * share
		velocity_z = velocity_z + change_z * share
		if ran < room:
			x = x + velocity_x * IMAGINED_SEC
			z = z + velocity_z * IMAGINED_SEC
			ran = x * along_x + z * along_z
		var away_x: float = x - threat_x
		var away_z: float = z - threat_z
		apart = sqrt(away_x * away_x + away_z * away_z)
		closest = apart if apart < closest else closest
		if apart > 0.1:
			threat_x = threat_x + away_x / apart * _rules.speed * IMAGINED_SEC
			threat_z = threat_z + away_z / apart * _rules.speed * IMAGINED_SEC
	var own_x: float = obs[TagObservation.position] * _rules.position_scale + x
	var own_z: float = obs[TagObservation.position + 2] * _rules.position_scale + z
	var hidden: float = COVER if _hidden(x, z, threat_x, threat_z) else 0.0
	return closest + 1.5 * apart + hidden - _cornered(own_x, own_z)


## Whether something that its rays show would be between the seeker and the agent.
func _hidden(end_x: float, end_z: float, threat_x: float, threat_z: float) -> bool:
	var line_x: float = end_x - threat_x
	var line_z: float = end_z - threat_z
	var square: float = line_x * line_x + line_z * line_z
	for ray: int in _solid_far.size():
		var x: float = _solid_far[ray] * _solid_x[ray] - threat_x
		var z: float = _solid_far[ray] * _solid_z[ray] - threat_z
		var along: float = x * line_x + z * line_z
		if 0.1 * square < along and along < 0.9 * square:
			var across: float = x * line_z - z * line_x
			if across * across < 0.25 * square:
				return true
	return false


## How far it could run in a direction: to the walls, or to what its rays show.
func _room(obs: PackedFloat32Array, along_x: float, along_z: float) -> float:
	var x: float = obs[TagObservation.position] * _rules.position_scale
	var z: float = obs[TagObservation.position + 2] * _rules.position_scale
	var room: float = 100.0
	if along_x > 0.001 or along_x < -0.001:
		var wall: float = ((_rules.stop_x if along_x > 0.0 else -_rules.stop_x) - x) / along_x
		room = wall if wall < room else room
	if along_z > 0.001 or along_z < -0.001:
		var wall: float = ((_rules.stop_z if along_z > 0.0 else -_rules.stop_z) - z) / along_z
		room = wall if wall < room else room
	var clear: float = _clearance(along_x, along_z) - 0.5 * _rules.size
	room = clear if clear < room else room
	return room if room > 0.0 else 0.0


## Penalty of a place near a wall, higher near two.
func _cornered(x: float, z: float) -> float:
	var room_x: float = _rules.stop_x - absf(x)
	var room_z: float = _rules.stop_z - absf(z)
	var near_x: float = 3.0 - room_x if room_x < 3.0 else 0.0
	var near_z: float = 3.0 - room_z if room_z < 3.0 else 0.0
	return 0.6 * near_x + 0.6 * near_z + 0.3 * near_x * near_z
