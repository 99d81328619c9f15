class_name TagMatch
extends RefCounted
## The course of a match in one arena: spawn, sense, and everything a decision sets off.

enum End { GOING_ON, TAGGED, TIMED_OUT }

const NOBODY: int = -1
const FIRST_TRIES: int = 16
const SECOND_TRIES: int = 64
const FACING_TRIES: int = 32
const FLOOR_STEPS: int = 80

var rules: TagRules
var layouts: Array[TagLayout]
var seed_value: int
var number: int
var first_seeker: int

var episode: int = 0
var tick: int = 0
## Which layout this episode is played on.
var layout_index: int = 0
## Which of the two agents is "it" now.
var seeker: int = 0
var agents: Array[TagAgent] = [TagAgent.new(), TagAgent.new()]
var observations: Array[PackedFloat32Array] = [PackedFloat32Array(), PackedFloat32Array()]
## The last decision's rewards, and the same term by term.
var rewards: PackedFloat64Array = [0.0, 0.0]
var terms: Array[PackedFloat64Array] = [PackedFloat64Array(), PackedFloat64Array()]
var end: End = End.GOING_ON
var winner: int = NOBODY
## Whether a decision was commanded that is not reckoned up yet.
var deciding: bool = false

var _size: float
var _reach_square: float
## For each layout one an agent.
var _solvers: Array[TagSolver] = []
var _eyes: Array[TagEyes] = []
var _commands: Array[TagCommand] = [TagCommand.new(), TagCommand.new()]
var _acted_as_seeker: int = 0
var _distance_before: float = 0.0
var _ticks_left: int = 0
var _near_jumps: int = 0
## 1 if the seeker saw the hider when the decision began, -1 if not, 0 if its eyes were closed.
var _sight: int = 0
var _tags: Array[int] = [0, 0]
## Where each reward term is in `terms`.
var _term_index: Dictionary[String, int] = TagRules.reward_terms()


func _init(
	game: TagRules,
	played_on: Array[TagLayout],
	match_seed: int = 0,
	arena: int = 0,
	starts_as_seeker: int = 0
) -> void:
	layouts = played_on
	seed_value = match_seed
	number = arena
	first_seeker = starts_as_seeker
	play_by(game)
	for i: int in 2:
		observations[i].resize(rules.observation_size)
		terms[i].resize(_term_index.size())


## Take other rules, before an episode begins: solvers and eyes keep numbers of those they know.
func play_by(game: TagRules) -> void:
	rules = game
	_size = rules.size
	_reach_square = rules.reach_square
	_solvers.clear()
	_eyes.clear()
	for layout: TagLayout in layouts:
		for i: int in 2:
			_solvers.append(TagSolver.new(rules, layout))
		_eyes.append(TagEyes.new(rules, layout))


## Begin an episode and look.
func begin(which: int) -> void:
	episode = which
	tick = 0
	layout_index = 0
	if layouts.size() > 1:
		layout_index = int(_draw(TagStreams.Purpose.LAYOUT, 0)[0] * layouts.size())
	seeker = first_seeker
	end = End.GOING_ON
	winner = NOBODY
	deciding = false
	rewards.fill(0.0)
	for i: int in 2:
		terms[i].fill(0.0)
	_place()
	for i: int in 2:
		agents[i].settle(rules.stop_floor)
		agents[i].immune_ticks = rules.head_start_ticks
		_face(agents[i], i * FACING_TRIES)
	sense()


## The role that an agent plays now.
func role_of(agent: int) -> String:
	return "seeker" if agent == seeker else "hider"


## Whether this is the head start: the seeker neither moves nor sees, and nobody can be tagged.
func eyes_closed() -> bool:
	return tick < rules.head_start_ticks


## Both agents look around; agent 0 first.
func sense() -> void:
	var eyes: TagEyes = _eyes[layout_index]
	for i: int in 2:
		observations[i] = eyes.observe(agents[i], agents[1 - i], i == seeker, tick, observations[i])


## Play a whole decision of both agents, and look.
func decide(action_0: PackedFloat32Array, action_1: PackedFloat32Array) -> void:
	command(action_0, action_1)
	while advance():
		pass
	conclude()


## Take the two actions of a decision.
func command(action_0: PackedFloat32Array, action_1: PackedFloat32Array) -> void:
	_commands[0].take(action_0[0], action_0[1], action_0[2], rules)
	_commands[1].take(action_1[0], action_1[1], action_1[2], rules)
	_acted_as_seeker = seeker
	_sight = 1 if agents[seeker].seen_tick == tick else -1
	if eyes_closed():
		_sight = 0
		_commands[seeker].clear()
	_distance_before = agents[0].distance_to(agents[1])
	_ticks_left = rules.decision_ticks
	deciding = true
	_near_jumps = 0
	_tags[0] = 0
	_tags[1] = 0


## Play one tick of the decision; false when that was its last.
func advance() -> bool:
	var one: TagAgent = agents[0]
	var two: TagAgent = agents[1]
	var jumped_one: bool = _solvers[2 * layout_index].move(one, two, _commands[0])
	var jumped_two: bool = _solvers[2 * layout_index + 1].move(two, one, _commands[1])
	if jumped_one if seeker == 0 else jumped_two:
		if seeker == _acted_as_seeker and one.distance_to(two) <= rules.weights.jump_near_m:
			_near_jumps += 1
	_judge()
	_ticks_left -= 1
	return end == End.GOING_ON and _ticks_left > 0


## Whether the decision has ticks left to play.
func goes_on() -> bool:
	return deciding and _ticks_left > 0 and end == End.GOING_ON


## Reckon up a decision whose ticks are played, and look.
func conclude() -> void:
	deciding = false
	var progress: float = _distance_before - agents[0].distance_to(agents[1])
	for i: int in 2:
		_fill_terms(i, progress)
		var total: float = 0.0
		for term: float in terms[i]:
			total = total + term
		rewards[i] = total
	sense()


func _draw(purpose: TagStreams.Purpose, index: int) -> PackedFloat64Array:
	return TagStreams.uniform_pair(seed_value, number, episode, purpose, index)


func _place() -> void:
	var one: TagAgent = agents[0]
	var two: TagAgent = agents[1]
	var draw: int = 0
	for _first: int in FIRST_TRIES:
		_drop(one, draw)
		draw += 1
		if not _is_free(one):
			continue
		for _second: int in SECOND_TRIES:
			_drop(two, draw)
			draw += 1
			var x: float = two.x - one.x
			var z: float = two.z - one.z
			if x * x + z * z >= rules.separation_square and _is_free(two):
				return
	_place_far_apart()


## Two far points, for when drawing found none: the first free one, and the farthest from it.
func _place_far_apart() -> void:
	var one: TagAgent = agents[0]
	var two: TagAgent = agents[1]
	var place: TagAgent = TagAgent.new()
	var farthest: float = -1.0
	for i: int in FLOOR_STEPS + 1:
		for j: int in FLOOR_STEPS + 1:
			place.x = (i * 2.0 / FLOOR_STEPS - 1.0) * rules.stop_x
			place.z = (j * 2.0 / FLOOR_STEPS - 1.0) * rules.stop_z
			if not _is_free(place):
				continue
			if farthest < 0.0:
				one.x = place.x
				one.z = place.z
			var x: float = place.x - one.x
			var z: float = place.z - one.z
			if x * x + z * z > farthest:
				farthest = x * x + z * z
				two.x = place.x
				two.z = place.z


func _drop(agent: TagAgent, draw: int) -> void:
	var shares: PackedFloat64Array = _draw(TagStreams.Purpose.SPAWN, draw)
	agent.x = (2.0 * shares[0] - 1.0) * rules.stop_x
	agent.z = (2.0 * shares[1] - 1.0) * rules.stop_z


func _is_free(agent: TagAgent) -> bool:
	var layout: TagLayout = layouts[layout_index]
	for index: int in layout.count:
		var base: int = index * TagLayout.STRIDE
		if (
			layout.numbers[base + TagLayout.Part.STOP_LOW] < agent.x
			and agent.x < layout.numbers[base + TagLayout.Part.STOP_HIGH]
			and layout.numbers[base + TagLayout.Part.STOP_LOW + 2] < agent.z
			and agent.z < layout.numbers[base + TagLayout.Part.STOP_HIGH + 2]
		):
			return false
	return true


func _face(agent: TagAgent, first_draw: int) -> void:
	for attempt: int in FACING_TRIES:
		var shares: PackedFloat64Array = _draw(TagStreams.Purpose.FACING, first_draw + attempt)
		var x: float = 2.0 * shares[0] - 1.0
		var z: float = 2.0 * shares[1] - 1.0
		var square: float = x * x + z * z
		if 0.01 < square and square < 1.0:
			var length: float = sqrt(square)
			agent.forward_x = x / length
			agent.forward_z = z / length
			return


## Count the tick, then see whether it brought a tag or the end.
func _judge() -> void:
	tick += 1
	var hunter: TagAgent = agents[seeker]
	var prey: TagAgent = agents[1 - seeker]
	hunter.it_ticks += 1
	if hunter.immune_ticks > 0:
		hunter.immune_ticks -= 1
	if prey.immune_ticks > 0:
		prey.immune_ticks -= 1
	if prey.immune_ticks == 0 and hunter.gap_square(prey, _size) <= _reach_square:
		_tags[seeker] += 1
		if rules.tag_ends_episode:
			end = End.TAGGED
			winner = seeker
			return
		seeker = 1 - seeker
		hunter.immune_ticks = rules.immunity_ticks
		prey.immune_ticks = rules.immunity_ticks
	if tick >= rules.limit_ticks:
		end = End.TIMED_OUT
		if agents[0].it_ticks != agents[1].it_ticks:
			winner = 0 if agents[0].it_ticks < agents[1].it_ticks else 1


func _fill_terms(i: int, progress: float) -> void:
	var agent: TagAgent = agents[i]
	var weights: Dictionary[String, float] = rules.weights
	var hunts: bool = i == _acted_as_seeker
	var tags: int = _tags[i] - _tags[1 - i]
	var verdict: int = 0
	if end == End.TIMED_OUT and winner != NOBODY:
		verdict = 1 if winner == i else -1
	var at: Dictionary[String, int] = _term_index
	var row: PackedFloat64Array = terms[i]
	row[at.distance] = weights.distance_reward_scale * (progress if hunts else -progress)
	row[at.time] = weights.seeker_time_penalty if hunts else 0.0
	row[at.survival] = 0.0 if hunts else weights.runner_survival_bonus
	row[at.tag] = (weights.win_bonus if tags > 0 else weights.tagged_penalty) * tags
	row[at.timeout] = (
		(weights.timeout_hider_bonus if verdict > 0 else weights.timeout_seeker_penalty) * verdict
	)
	var stands_high: bool = agent.on_floor and agent.y > weights.high_ground_y_m
	row[at.high_ground] = weights.high_ground_bonus if stands_high and not hunts else 0.0
	row[at.jump_near] = weights.jump_near_bonus * _near_jumps if hunts else 0.0
	var room_x: float = rules.stop_x - absf(agent.x)
	var room_z: float = rules.stop_z - absf(agent.z)
	var near_wall: bool = (room_x if room_x < room_z else room_z) < weights.wall_near_m
	row[at.wall] = -weights.wall_penalty if near_wall else 0.0
	row[at.speed] = 0.0
	if weights.speed_bonus > 0.0:
		var x: float = agent.velocity_x
		var z: float = agent.velocity_z
		row[at.speed] = weights.speed_bonus * (sqrt(x * x + z * z) / rules.speed)
	row[at.sight] = weights.sight_bonus * (_sight if hunts else -_sight)
	terms[i] = row
