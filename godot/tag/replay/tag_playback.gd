class_name TagPlayback
extends RefCounted
## Sets a match to any moment of a logged one.
##
## At a logged tick, exactly what was logged. In between, positions follow a cubic through the
## logged positions and velocities, facing turns evenly the shorter way, and the rest is as logged
## before.

## A time this close to a logged tick is that tick.
const SAME_TICK: float = 0.000001

var trajectory: TagTrajectoryFile
var game: TagMatch


func _init(logged: TagTrajectoryFile) -> void:
	trajectory = logged
	var start: TagTrajectoryStart = logged.start
	game = TagMatch.new(
		start.rules, [start.layout], start.seed_value, start.arena, logged.first_seeker
	)
	game.episode = start.episode
	show_at(0.0)


## Length of the match.
func seconds() -> float:
	return float(trajectory.last_tick()) / game.rules.ticks_per_second


## Set the match to this second, limited to the logged time.
func show_at(second: float) -> void:
	var ticks: PackedInt64Array = trajectory.ticks
	var at: float = clampf(second * game.rules.ticks_per_second, ticks[0], trajectory.last_tick())
	var moment: int = ticks.bsearch(floori(at + SAME_TICK) + 1) - 1
	game.tick = floori(at + SAME_TICK)
	var ended: bool = moment == ticks.size() - 1
	game.end = trajectory.end if ended else TagMatch.End.GOING_ON
	game.winner = trajectory.winner if ended else TagMatch.NOBODY
	for agent: int in 2:
		if trajectory.facts[2 * moment + agent] & TagTrajectoryFile.Fact.IS_IT:
			game.seeker = agent
	var is_logged: bool = at - ticks[moment] <= SAME_TICK
	for agent: int in 2:
		if is_logged:
			_set_logged(agent, moment)
		else:
			_set_between(agent, moment, at)
		_set_facts(agent, moment)
	_look(moment, is_logged)


func _set_logged(which: int, moment: int) -> void:
	var numbers: PackedFloat64Array = trajectory.numbers
	var place: int = (2 * moment + which) * TagTrajectoryFile.STRIDE
	var agent: TagAgent = game.agents[which]
	agent.x = numbers[place + TagTrajectoryFile.Part.X]
	agent.y = numbers[place + TagTrajectoryFile.Part.Y]
	agent.z = numbers[place + TagTrajectoryFile.Part.Z]
	agent.velocity_x = numbers[place + TagTrajectoryFile.Part.VELOCITY_X]
	agent.velocity_y = numbers[place + TagTrajectoryFile.Part.VELOCITY_Y]
	agent.velocity_z = numbers[place + TagTrajectoryFile.Part.VELOCITY_Z]
	agent.forward_x = numbers[place + TagTrajectoryFile.Part.FORWARD_X]
	agent.forward_z = numbers[place + TagTrajectoryFile.Part.FORWARD_Z]


func _set_between(which: int, moment: int, at: float) -> void:
	var before: int = (2 * moment + which) * TagTrajectoryFile.STRIDE
	var length: float = trajectory.ticks[moment + 1] - trajectory.ticks[moment]
	var share: float = (at - trajectory.ticks[moment]) / length
	var length_sec: float = length / game.rules.ticks_per_second
	var agent: TagAgent = game.agents[which]
	agent.x = _along(before + TagTrajectoryFile.Part.X, share, length_sec)
	agent.y = _along(before + TagTrajectoryFile.Part.Y, share, length_sec)
	agent.z = _along(before + TagTrajectoryFile.Part.Z, share, length_sec)
	agent.velocity_x = _mixed(before + TagTrajectoryFile.Part.VELOCITY_X, share)
	agent.velocity_y = _mixed(before + TagTrajectoryFile.Part.VELOCITY_Y, share)
	agent.velocity_z = _mixed(before + TagTrajectoryFile.Part.VELOCITY_Z, share)
	var after: int = before + 2 * TagTrajectoryFile.STRIDE
	var angle: float = lerp_angle(_facing(before), _facing(after), share)
	agent.forward_x = sin(angle)
	agent.forward_z = cos(angle)


## A point of the cubic through the logged positions and velocities, never beyond either position.
func _along(place: int, share: float, length_sec: float) -> float:
	var numbers: PackedFloat64Array = trajectory.numbers
	var after: int = place + 2 * TagTrajectoryFile.STRIDE
	var from: float = numbers[place]
	var to: float = numbers[after]
	var leaving: float = numbers[place + TagTrajectoryFile.Part.VELOCITY_X] * length_sec
	var arriving: float = numbers[after + TagTrajectoryFile.Part.VELOCITY_X] * length_sec
	var rest: float = 1.0 - share
	var value: float = from * rest * rest * (1.0 + 2.0 * share)
	value += to * share * share * (1.0 + 2.0 * rest)
	value += leaving * share * rest * rest - arriving * share * share * rest
	return clampf(value, minf(from, to), maxf(from, to))


func _mixed(place: int, share: float) -> float:
	var numbers: PackedFloat64Array = trajectory.numbers
	return lerpf(numbers[place], numbers[place + 2 * TagTrajectoryFile.STRIDE], share)


func _facing(place: int) -> float:
	return atan2(
		trajectory.numbers[place + TagTrajectoryFile.Part.FORWARD_X],
		trajectory.numbers[place + TagTrajectoryFile.Part.FORWARD_Z]
	)


func _set_facts(which: int, moment: int) -> void:
	var agent: TagAgent = game.agents[which]
	var facts: int = trajectory.facts[2 * moment + which]
	agent.on_floor = facts & TagTrajectoryFile.Fact.ON_FLOOR != 0
	agent.immune_ticks = 0
	if facts & TagTrajectoryFile.Fact.IMMUNE:
		var tags_so_far: int = trajectory.tag_ticks.bsearch(game.tick + 1)
		var since: int = game.tick - trajectory.tag_ticks[tags_so_far - 1] if tags_so_far else 0
		agent.immune_ticks = maxi(game.rules.immunity_ticks - since, 1)


## Observations from the current places; at a logged tick, the logged rays.
func _look(moment: int, is_logged: bool) -> void:
	for agent: TagAgent in game.agents:
		agent.seen_tick = -1
	game.sense()
	for which: int in 2:
		var facts: int = trajectory.facts[2 * moment + which]
		var sight: PackedFloat32Array = game.observations[which]
		sight[TagObservation.opponent_visible] = 1.0 if facts & TagTrajectoryFile.Fact.SEES else 0.0
		if is_logged and facts & TagTrajectoryFile.Fact.HAS_RAYS:
			_set_rays((2 * moment + which) * game.rules.rays, sight)
		game.observations[which] = sight


func _set_rays(place: int, sight: PackedFloat32Array) -> void:
	var at: int = TagObservation.rays
	for ray: int in game.rules.rays:
		sight[at] = trajectory.reaches[place + ray] / game.rules.eye_range
		sight[at + 1] = 1.0 if trajectory.kinds[place + ray] == 1 else 0.0
		sight[at + 2] = 1.0 if trajectory.kinds[place + ray] == 2 else 0.0
		at += 3
