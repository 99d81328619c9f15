extends TagTest
## An audit by Godot's own physics: whatever the agents do, no body ever overlaps another.
##
## The bodies of real arenas follow the matches; after every tick Jolt is asked what each agent's
## cube, shrunk by a hair, touches.

const LAYOUTS: Array[String] = ["playground", "central_cross", "four_corners", "empty", "colonnade"]
## The first arenas keep to one layout each, the others change with the episode.
const ARENAS: int = 8
const TICKS: int = 600
const SEED: int = 9
## What the cubes are shrunk by: above the rounding of Jolt's floats and below the skin.
const HAIR_M: float = 0.0002
## How far Jolt's float32 transforms may be from the match's doubles.
const ROUNDING_M: float = 0.0001

var _rules: TagRules = tick_rules()
var _random: RandomNumberGenerator = RandomNumberGenerator.new()
var _arenas: Array[TagArena] = []
var _held: Array[PackedFloat32Array] = []
var _shape: BoxShape3D = BoxShape3D.new()


func test_nothing_overlaps_when_agents_wander() -> void:
	await _fuzz(_wander)


func test_nothing_overlaps_when_agents_press_into_corners() -> void:
	await _fuzz(_press_into_corners)


func test_nothing_overlaps_when_agents_run_at_box_edges() -> void:
	await _fuzz(_run_at_edges)


func test_nothing_overlaps_when_agents_push_each_other() -> void:
	await _fuzz(_push)


func test_nothing_overlaps_when_one_shoves_the_other_into_a_corner() -> void:
	await _fuzz(_shove)


func test_the_audit_sees_an_overlap() -> void:
	_build()
	await frames(2)
	check_equal(_overlaps(), [] as Array[String], "overlaps at the start")
	var agents: Array[TagAgent] = _arenas[0].game.agents
	var start: PackedFloat64Array = [agents[0].x, agents[0].y, agents[0].z]
	var staged_places: Dictionary[String, PackedFloat64Array] = {
		"Agent2": [agents[1].x + 0.999, agents[1].y, agents[1].z],
		"Box0": [-6.0 - 0.499, 0.501, -4.5],
		"Box4": [0.0, 1.1 + 0.499, 0.0],
		"Floor": [start[0], 0.499, start[2]],
		"East": [9.501, 0.501, 0.0],
		"North": [0.0, 0.501, -9.501],
	}
	for name: String in staged_places:
		place(agents[0], staged_places[name], _rules)
		_arenas[0].follow()
		await frames(2)
		var found: Array[String] = _overlaps()
		check(found.has("Arena0: Agent1 in " + name), "in %s: found %s" % [name, found])
		place(agents[0], start, _rules)
		_arenas[0].follow()
		await frames(2)
		check_equal(_overlaps(), [] as Array[String], "overlaps after leaving " + name)


## Play with a policy in all arenas, and audit after every tick.
func _fuzz(policy: Callable) -> void:
	_build()
	await frames(2)
	var touches: int = 0
	for tick: int in TICKS:
		for index: int in _arenas.size():
			policy.call(index)
			var game: TagMatch = _arenas[index].game
			if game.end != TagMatch.End.GOING_ON:
				game.begin(game.episode + 1)
			game.command(_held[2 * index], _held[2 * index + 1])
			game.advance()
			touches += int(game.agents[0].gap_square(game.agents[1], _rules.size) < 0.0001)
			_arenas[index].follow()
		await frames(1)
		var found: Array[String] = _overlaps()
		check(found.is_empty(), "seed %d, tick %d: %s" % [SEED, tick, found])
		check(_strays() <= ROUNDING_M, "tick %d: a body %f m astray" % [tick, _strays()])
		for arena: TagArena in _arenas:
			check(arena.game.agents[0].y < 5.0 and arena.game.agents[1].y < 5.0, "over the walls")
	if policy == _push or policy == _shove:
		check(touches > 50, "agents touched in %d ticks only" % touches)


func _build() -> void:
	_random.seed = SEED
	_shape.size = Vector3.ONE * (_rules.size - HAIR_M)
	for index: int in ARENAS:
		var layouts: Array[TagLayout] = []
		for name: String in LAYOUTS.slice(index, index + 1) if index < LAYOUTS.size() else LAYOUTS:
			layouts.append(TagLayout.read(name, _rules))
		var game: TagMatch = TagMatch.new(_rules, layouts, SEED, index)
		game.begin(0)
		var arena: TagArena = TagArena.create("Arena%d" % index)
		arena.position = TagGame.grid_place(index, ARENAS, _rules)
		add_child(arena)
		arena.setup(game)
		_arenas.append(arena)
		_held.append_array([act(), act()])


## What Jolt finds where nothing should be, as "arena: agent in other".
func _overlaps() -> Array[String]:
	var found: Array[String] = []
	var query: PhysicsShapeQueryParameters3D = PhysicsShapeQueryParameters3D.new()
	query.shape = _shape
	for arena: TagArena in _arenas:
		var space: PhysicsDirectSpaceState3D = arena.get_world_3d().direct_space_state
		for body: AnimatableBody3D in arena.bodies:
			query.transform = _transform_in_jolt(body)
			query.exclude = [body.get_rid()]
			for hit: Dictionary in space.intersect_shape(query, 4):
				found.append("%s: %s in %s" % [arena.name, body.name, hit.collider.name])
	return found


## The largest distance between where Jolt holds a body and where the match says it is.
func _strays() -> float:
	var worst: float = 0.0
	for arena: TagArena in _arenas:
		for i: int in 2:
			var agent: TagAgent = arena.game.agents[i]
			var place_held: Vector3 = _transform_in_jolt(arena.bodies[i]).origin - arena.position
			worst = maxf(worst, place_held.distance_to(Vector3(agent.x, agent.y, agent.z)))
	return worst


func _transform_in_jolt(body: AnimatableBody3D) -> Transform3D:
	return PhysicsServer3D.body_get_state(body.get_rid(), PhysicsServer3D.BODY_STATE_TRANSFORM)


## Uniform actions, each held for a while.
func _wander(index: int) -> void:
	if _random.randf() < 0.1:
		for i: int in 2:
			_held[2 * index + i] = act(_any(1.2), _any(1.2), _any(1.2))


## Into the nearest corner, jumping, and now and then a change of mind.
func _press_into_corners(index: int) -> void:
	for i: int in 2:
		var agent: TagAgent = _arenas[index].game.agents[i]
		var x: float = signf(agent.x) * (-1.0 if _random.randf() < 0.02 else 1.0)
		var z: float = signf(agent.z) * (-1.0 if _random.randf() < 0.02 else 1.0)
		_held[2 * index + i] = act(x, z, 1.0 if _random.randf() < 0.3 else 0.0)


## At the edges of boxes, jumping at all moments around reaching them.
func _run_at_edges(index: int) -> void:
	for i: int in 2:
		var agent: TagAgent = _arenas[index].game.agents[i]
		var action: PackedFloat32Array = _held[2 * index + i]
		if _random.randf() < 0.05:
			action[0] = _any(6.0) - agent.x
			action[1] = _any(6.0) - agent.z
		action[2] = 1.0 if _random.randf() < 0.5 else 0.0
		_held[2 * index + i] = action


## Both at each other, and onto each other's heads.
func _push(index: int) -> void:
	var agents: Array[TagAgent] = _arenas[index].game.agents
	for i: int in 2:
		var x: float = agents[1 - i].x - agents[i].x + _random.randfn(0.0, 0.3)
		var z: float = agents[1 - i].z - agents[i].z + _random.randfn(0.0, 0.3)
		_held[2 * index + i] = act(x, z, 1.0 if _random.randf() < 0.4 else 0.0)


## One hides in a corner or on an edge, the other presses it further in.
func _shove(index: int) -> void:
	_press_into_corners(index)
	var agents: Array[TagAgent] = _arenas[index].game.agents
	_held[2 * index] = act(agents[1].x - agents[0].x, agents[1].z - agents[0].z, _any(1.0))


func _any(most: float) -> float:
	return _random.randf_range(-most, most)
