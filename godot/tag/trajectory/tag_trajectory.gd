class_name TagTrajectory
extends RefCounted
## The log of one match: one line of JSON per record, with every bit of the numbers.
##
## docs/trajectory_rendering.md describes the records.

const FORMAT: int = 1
const NAMES: Array[String] = ["Agent1", "Agent2"]
const REASONS: Dictionary[TagMatch.End, String] = {
	TagMatch.End.TAGGED: "tag", TagMatch.End.TIMED_OUT: "timeout"
}
## Smallest overlap that is not rounding; agents stay a millimetre away from everything solid.
const DEEPEST_M: float = 0.000001

var game: TagMatch
var lines: PackedStringArray = []

var _tick: int = 0
var _seeker: int = 0
## How long each agent was "it" at the last record.
var _it_ticks: Array[int] = [0, 0]


## Log a match that has just started.
func _init(begun: TagMatch, players: Dictionary[String, String]) -> void:
	game = begun
	_write(_start(players))
	record_decision()


## Log the result of a decision.
func record_decision() -> void:
	_write_tags()
	if game.end == TagMatch.End.TIMED_OUT:
		_write(_happened("timeout", game.tick))
	for i: int in 2:
		var what: String = anomaly(game.agents[i], game)
		if what:
			var record: Dictionary = _happened("physics_anomaly", game.tick)
			_write(record.merged({"agent": NAMES[i], "what": what}))
	for i: int in 2:
		_write(_step(i))
		_it_ticks[i] = game.agents[i].it_ticks
	_tick = game.tick
	_seeker = game.seeker
	if is_over():
		var winner: Variant = null if game.winner == TagMatch.NOBODY else NAMES[game.winner]
		var record: Dictionary = _happened("episode_end", game.tick)
		_write(record.merged({"winner": winner, "terminal_reason": REASONS[game.end]}))


func is_over() -> bool:
	return game.end != TagMatch.End.GOING_ON


## What is impossible about an agent's position, or "".
static func anomaly(agent: TagAgent, played: TagMatch) -> String:
	for value: float in agent.numbers():
		if not is_finite(value):
			return "a number is not finite"
	var rules: TagRules = played.rules
	var half: float = rules.half
	var where: String = "the floor"
	var deepest: float = half - agent.y
	var into_walls: float = maxf(absf(agent.x) - rules.wall_x, absf(agent.z) - rules.wall_z) + half
	if into_walls > deepest:
		where = "a wall"
		deepest = into_walls
	var layout: TagLayout = played.layouts[played.layout_index]
	for index: int in layout.count:
		var depth: float = _depth(agent, half, layout.numbers, index * TagLayout.STRIDE)
		if depth > deepest:
			where = "box %d" % index
			deepest = depth
	return "%.6f m inside %s" % [deepest, where] if deepest > DEEPEST_M else ""


## How deep an agent is in a box; negative outside.
static func _depth(agent: TagAgent, half: float, boxes: PackedFloat64Array, base: int) -> float:
	var depth: float = INF
	var middle: PackedFloat64Array = [agent.x, agent.y, agent.z]
	for axis: int in 3:
		depth = minf(depth, middle[axis] + half - boxes[base + axis])
		depth = minf(depth, boxes[base + TagLayout.Part.HIGH + axis] - middle[axis] + half)
	return depth


func _start(players: Dictionary[String, String]) -> Dictionary:
	var rules: TagRules = game.rules
	var layout: TagLayout = game.layouts[game.layout_index]
	return {
		"type": "episode_start",
		"format": FORMAT,
		"episode": game.episode,
		"arena": game.number,
		"engine": "godot",
		"seed": game.seed_value,
		"rules": rules.rule_set,
		"layout": {"name": layout.name, "boxes": layout.boxes},
		"arena_size_m": [2.0 * rules.wall_x, 2.0 * rules.wall_z],
		"agent_size_m": rules.size,
		"ticks_per_second": rules.ticks_per_second,
		"decision_ticks": rules.decision_ticks,
		"time_limit_sec": rules.time_limit_sec,
		"eyes":
		{
			"rays": rules.rays,
			"fan_deg": rules.cone_deg,
			"range_m": rules.eye_range,
			"height_m": rules.eye_height,
		},
		"agents": NAMES,
		"seeker": NAMES[game.seeker],
		"players": players,
		"ts": 0.0,
	}


## The tag inside the last decision, if there was one.
func _write_tags() -> void:
	var attacker: int = _seeker
	var tick: int = game.tick
	if game.tick == 0:
		return
	if game.seeker != _seeker:
		# the previous seeker's ticks as "it" end at the tag
		tick = _tick + game.agents[attacker].it_ticks - _it_ticks[attacker]
	elif game.end != TagMatch.End.TAGGED:
		return
	var record: Dictionary = _happened("tag", tick)
	_write(record.merged({"attacker": NAMES[attacker], "target": NAMES[1 - attacker]}))


func _step(i: int) -> Dictionary:
	var agent: TagAgent = game.agents[i]
	var record: Dictionary = {
		"type": "step",
		"episode": game.episode,
		"agent": NAMES[i],
		"tick": game.tick,
		"ts": _seconds(game.tick),
		"pos": _numbers([agent.x, agent.y, agent.z]),
		"vel": _numbers([agent.velocity_x, agent.velocity_y, agent.velocity_z]),
		"forward": _numbers([agent.forward_x, agent.forward_z]),
		"is_it": i == game.seeker,
		"on_floor": agent.on_floor,
		"immune": agent.immune_ticks > 0,
		"sees": game.observations[i][TagObservation.opponent_visible] > 0.5,
	}
	return record.merged(_rays(game.observations[i]))


func _rays(observation: PackedFloat32Array) -> Dictionary:
	var distances: PackedFloat64Array = []
	var types: PackedInt32Array = []
	for place: int in range(TagObservation.rays, observation.size(), 3):
		distances.append(observation[place] * game.rules.eye_range)
		types.append(int(observation[place + 1]) + 2 * int(observation[place + 2]))
	return {"dists": _numbers(distances), "types": types}


func _happened(what: String, tick: int) -> Dictionary:
	return {"type": what, "episode": game.episode, "tick": tick, "ts": _seconds(tick)}


func _seconds(tick: int) -> float:
	return float(tick) / game.rules.ticks_per_second


## Numbers for JSON, which has no NaN and no infinity.
func _numbers(values: PackedFloat64Array) -> Array:
	var numbers: Array = []
	for value: float in values:
		numbers.append(value if is_finite(value) else null)
	return numbers


func _write(record: Dictionary) -> void:
	lines.append(JSON.stringify(record, "", false, true))
