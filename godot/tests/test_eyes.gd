extends TagTest
## Eyes: what is there is seen, what is hidden is not, and Godot's own rays find the same.

const VISIBLE: int = 13
const SEEN: int = 14
const AGE: int = 17
const PLACEMENTS: int = 150
## Placements a layout for the comparison with the plain test.
const PLAIN_PLACEMENTS: int = 400
const SEED: int = 20

var _rules: TagRules = tick_rules("seek")
var _rest: float = _rules.stop_floor


func test_straight_ahead_distance_is_the_distance_to_the_wall() -> void:
	var game: TagMatch = staged(_rules, "empty", [0.0, _rest, 4.0], [-8.0, _rest, -8.0])
	game.sense()
	for ray: int in [17, 18]:
		var expected: float = 6.0 / cos(deg_to_rad(60.0 / 35.0))
		check_near(_ray(game, 0, ray)[0] * 15.0, expected, 1e-5, "distance")
		check_equal(_ray(game, 0, ray).slice(1), PackedFloat32Array([1.0, 0.0]), "a wall")


func test_one_ahead_is_seen_and_one_behind_is_not() -> void:
	var game: TagMatch = staged(_rules, "empty", [0.0, _rest, 0.0], [0.0, _rest, 6.0])
	game.sense()
	check_equal(game.observations[0][VISIBLE], 1.0, "ahead")
	check(_rays_on_agent(game, 0) >= 2, "rays that meet it")
	check_near(_ray(game, 0, 17)[0] * 15.0, 5.5 / cos(deg_to_rad(60.0 / 35.0)), 1e-5, "distance")
	check_equal(game.observations[1][VISIBLE], 0.0, "behind")
	check_equal(_rays_on_agent(game, 1), 0, "rays that meet the one behind")


func test_the_cone_ends_at_its_edges() -> void:
	for degrees: float in [58.0, 65.0]:
		var x: float = 8.0 * sin(deg_to_rad(degrees))
		var z: float = 8.0 * cos(deg_to_rad(degrees))
		for side: float in [-1.0, 1.0]:
			var at: PackedFloat64Array = [side * x, _rest, z]
			var game: TagMatch = staged(_rules, "empty", [0.0, _rest, 0.0], at)
			game.sense()
			var expected: float = 1.0 if degrees < 60.0 else 0.0
			check_equal(game.observations[0][VISIBLE], expected, "at %f degrees" % degrees)


func test_sight_ends_at_the_range() -> void:
	for distance: float in [15.4, 15.6]:
		var at: PackedFloat64Array = [0.0, _rest, -9.0 + distance]
		var game: TagMatch = staged(_rules, "empty", [0.0, _rest, -9.0], at)
		game.sense()
		var expected: float = 1.0 if distance < 15.5 else 0.0
		check_equal(game.observations[0][VISIBLE], expected, "at %f m" % distance)
		if not expected:
			check_equal(_ray(game, 0, 17), PackedFloat32Array([1.0, 0.0, 0.0]), "nothing")


func test_nothing_about_one_behind_a_box_leaks() -> void:
	var seen: Array[PackedFloat32Array] = []
	for x: float in [-5.5, -4.0, -2.5]:
		var at: PackedFloat64Array = [x, _rest, 3.0]
		var game: TagMatch = staged(_rules, "central_cross", [-4.0, _rest, -2.0], at)
		game.agents[1].velocity_x = x
		game.sense()
		check_equal(game.observations[0][VISIBLE], 0.0, "visible at %f" % x)
		seen.append(game.observations[0].duplicate())
	check_equal(seen[1], seen[0], "the second place shows")
	check_equal(seen[2], seen[0], "the third place shows")


func test_one_on_a_box_is_seen_by_the_aimed_ray_alone() -> void:
	var above: PackedFloat64Array = [0.0, 1.1 + _rest, 0.9]
	var game: TagMatch = staged(_rules, "playground", [0.0, _rest, -1.7], above)
	game.sense()
	check_equal(game.observations[0][VISIBLE], 0.0, "hidden by the edge of the box it stands on")
	place(game.agents[0], [0.0, _rest, -4.0], _rules)
	game.sense()
	check_equal(game.observations[0][VISIBLE], 1.0, "seen from further away")
	check_equal(_rays_on_agent(game, 0), 0, "level rays that meet it")
	for axis: int in 3:
		var expected: float = [0.0, 1.1, 4.9][axis]
		check_near(game.observations[0][SEEN + axis] * 10.0, expected, 1e-5, "where it is seen")


func test_memory_keeps_the_place_and_ages() -> void:
	var game: TagMatch = staged(_rules, "empty", [0.0, _rest, 0.0], [0.0, _rest, 6.0])
	game.sense()
	check_equal(game.observations[0][AGE], 0.0, "age at sight")
	check_equal(game.observations[1][AGE], 1.0, "age of what was never seen")
	game.agents[0].forward_z = -1.0
	game.agents[1].x = 5.0
	play(game, 30)
	check_near(game.observations[0][AGE], 30.0 / 600.0, 1e-7, "age")
	check_near(game.observations[0][SEEN + 2] * 10.0, 6.0, 1e-5, "the place remembered")


## The same rays, asked of Jolt about the bodies of a real arena; on the floor and on boxes, so
## always below the top of the walls, which ends for Godot and not for us.
func test_rays_agree_with_godots_physics() -> void:
	var layouts: Array[TagLayout] = []
	for name: String in ["playground", "central_cross", "four_corners", "empty", "colonnade"]:
		layouts.append(TagLayout.read(name, _rules))
	var random: RandomNumberGenerator = RandomNumberGenerator.new()
	random.seed = SEED
	var met: Dictionary[String, int] = {"wall": 0, "agent": 0, "nothing": 0}
	var differing: Array[String] = []
	for layout: TagLayout in layouts:
		var arena: TagArena = TagArena.create()
		arena.position = Vector3(72.0, 0.0, -48.0)
		add_child(arena)
		arena.setup(TagMatch.new(_rules, [layout]))
		for _placement: int in PLACEMENTS:
			_scatter(arena.game, layout, random)
			arena.follow()
			await frames(2)
			for i: int in 2:
				differing.append_array(_compare(arena, TagEyes.new(_rules, layout), i, met))
		arena.free()
	var rays: int = met.wall + met.agent + met.nothing
	for kind: String in met:
		check(met[kind] > 500, "only %d rays met %s" % [met[kind], kind])
	check_equal(rays, layouts.size() * PLACEMENTS * 2 * 36, "rays")
	var part: float = float(differing.size()) / rays
	check(part <= 0.001, "seed %d: %d differ, %s" % [SEED, differing.size(), differing.slice(0, 3)])


## Culling changes no bit: every ray against every box, as docs/physics.md has it, gives the same;
## from edges and corners too, along the axes, and with a ray aimed exactly at a corner.
func test_culling_changes_no_bit() -> void:
	var random: RandomNumberGenerator = RandomNumberGenerator.new()
	random.seed = SEED
	var met: int = 0
	for file: String in DirAccess.get_files_at(TagLayout.FOLDER):
		var layout: TagLayout = TagLayout.read(file.get_basename(), _rules)
		var eyes: TagEyes = TagEyes.new(_rules, layout)
		var agent: TagAgent = TagAgent.new()
		var other: TagAgent = TagAgent.new()
		for placement: int in PLAIN_PLACEMENTS:
			_put_awkwardly(agent, layout, random)
			_put_awkwardly(other, layout, random)
			eyes.cast_fan(agent, other)
			var plain: Array[PackedFloat64Array] = _cast_plainly(agent, other, layout)
			for ray: int in _rules.rays:
				met += int(plain[1][ray] < INF)
				for kind: int in 2:
					var ours: float = [eyes.wall, eyes.body][kind][ray]
					if ours != plain[kind][ray]:
						var where: Array = [layout.name, placement, ray]
						check_equal(ours, plain[kind][ray], "%s, placement %d, ray %d" % where)
		check(failures.is_empty(), "seed %d: culling changes what is seen" % SEED)
	check(met > 1000, "only %d rays met the opponent" % met)


## Anywhere, often in line with the edges of a box, its middle, or where an agent leans on it.
func _put_awkwardly(agent: TagAgent, layout: TagLayout, random: RandomNumberGenerator) -> void:
	agent.settle(_rest + (random.randf_range(0.0, 2.5) if random.randf() < 0.2 else 0.0))
	agent.x = random.randf_range(-_rules.stop_x, _rules.stop_x)
	agent.z = random.randf_range(-_rules.stop_z, _rules.stop_z)
	var way: Vector2 = Vector2.from_angle(random.randf_range(-PI, PI))
	if random.randf() < 0.3:
		way = [Vector2.LEFT, Vector2.RIGHT, Vector2.UP, Vector2.DOWN][random.randi() % 4]
	agent.forward_x = way.x
	agent.forward_z = way.y
	if layout.count == 0 or random.randf() < 0.3:
		return
	var base: int = TagLayout.STRIDE * (random.randi() % layout.count)
	var parts: Array[int] = [
		TagLayout.Part.LOW, TagLayout.Part.HIGH, TagLayout.Part.MIDDLE, TagLayout.Part.STOP_LOW
	]
	if random.randf() < 0.5:
		agent.x = layout.numbers[base + parts[random.randi() % 4]]
	if random.randf() < 0.5:
		agent.z = layout.numbers[base + parts[random.randi() % 4] + 2]
	if random.randf() < 0.5:
		var x: float = layout.numbers[base + parts[random.randi() % 2]] - agent.x
		var z: float = layout.numbers[base + parts[random.randi() % 2] + 2] - agent.z
		var length: float = sqrt(x * x + z * z)
		if length > 0.0:
			var ray: int = random.randi() % _rules.rays
			agent.forward_x = (x * _rules.fan_cos[ray] + z * _rules.fan_sin[ray]) / length
			agent.forward_z = (z * _rules.fan_cos[ray] - x * _rules.fan_sin[ray]) / length


## Distances to solids and to the opponent along each ray, by testing all against all.
func _cast_plainly(
	agent: TagAgent, other: TagAgent, layout: TagLayout
) -> Array[PackedFloat64Array]:
	var y: float = agent.y + _rules.eye_height
	var half: float = _rules.half
	var found: Array[PackedFloat64Array] = [[], []]
	for ray: int in _rules.rays:
		var per_x: float = _per(
			agent.forward_x * _rules.fan_cos[ray] - agent.forward_z * _rules.fan_sin[ray]
		)
		var per_z: float = _per(
			agent.forward_x * _rules.fan_sin[ray] + agent.forward_z * _rules.fan_cos[ray]
		)
		var solid: float = minf(
			maxf((-_rules.wall_x - agent.x) * per_x, (_rules.wall_x - agent.x) * per_x),
			maxf((-_rules.wall_z - agent.z) * per_z, (_rules.wall_z - agent.z) * per_z)
		)
		for index: int in layout.count:
			var box: PackedFloat64Array = layout.numbers.slice(index * TagLayout.STRIDE)
			if box[1] <= y and y <= box[4]:
				var near: float = _meet(
					[box[0] - agent.x, box[3] - agent.x, box[2] - agent.z, box[5] - agent.z],
					per_x,
					per_z
				)
				solid = minf(solid, near)
		found[0].append(solid)
		var body: float = INF
		if other.y - half <= y and y <= other.y + half:
			body = _meet(
				[
					other.x - half - agent.x,
					other.x + half - agent.x,
					other.z - half - agent.z,
					other.z + half - agent.z
				],
				per_x,
				per_z
			)
		found[1].append(body)
	return found


func _per(along: float) -> float:
	return 1.0 / (TagEyes.TINY if absf(along) < TagEyes.TINY else along)


## Where a ray meets a box given as low and high x, low and high z from the eye; INF if nowhere.
func _meet(box: PackedFloat64Array, per_x: float, per_z: float) -> float:
	var near: float = maxf(
		minf(box[0] * per_x, box[1] * per_x), minf(box[2] * per_z, box[3] * per_z)
	)
	var far: float = minf(
		maxf(box[0] * per_x, box[1] * per_x), maxf(box[2] * per_z, box[3] * per_z)
	)
	return near if near <= far and near >= 0.0 else INF


## Both agents anywhere they could stand, facing anywhere.
func _scatter(game: TagMatch, layout: TagLayout, random: RandomNumberGenerator) -> void:
	for i: int in 2:
		var agent: TagAgent = game.agents[i]
		var high: float = -1.0
		while high < 0.0 or high > 1.5 or (i == 1 and game.agents[0].gap_square(agent, 1.0) == 0.0):
			agent.x = random.randf_range(-_rules.stop_x, _rules.stop_x)
			agent.z = random.randf_range(-_rules.stop_z, _rules.stop_z)
			high = _ground(agent, layout)
			agent.y = _rest + high
		var angle: float = random.randf_range(-PI, PI)
		agent.forward_x = sin(angle)
		agent.forward_z = cos(angle)


## Height of what is under an agent.
func _ground(agent: TagAgent, layout: TagLayout) -> float:
	var height: float = 0.0
	for index: int in layout.count:
		var away: Vector3 = Vector3(agent.x, 0.0, agent.z) - layout.centre(index)
		var room: Vector3 = 0.5 * layout.extent(index) + 0.501 * Vector3.ONE
		if absf(away.x) < room.x and absf(away.z) < room.z:
			height = maxf(height, layout.extent(index).y)
	return height


## Cast the fan of one agent both ways; what differs.
func _compare(
	arena: TagArena, eyes: TagEyes, i: int, met: Dictionary[String, int]
) -> Array[String]:
	var agent: TagAgent = arena.game.agents[i]
	eyes.cast_fan(agent, arena.game.agents[1 - i])
	var space: PhysicsDirectSpaceState3D = arena.get_world_3d().direct_space_state
	var query: PhysicsRayQueryParameters3D = PhysicsRayQueryParameters3D.new()
	query.from = arena.position + Vector3(agent.x, agent.y + _rules.eye_height, agent.z)
	query.exclude = [arena.bodies[i].get_rid()]
	var differing: Array[String] = []
	for ray: int in _rules.rays:
		var x: float = agent.forward_x * _rules.fan_cos[ray] - agent.forward_z * _rules.fan_sin[ray]
		var z: float = agent.forward_x * _rules.fan_sin[ray] + agent.forward_z * _rules.fan_cos[ray]
		query.to = query.from + Vector3(x, 0.0, z) * _rules.eye_range
		var hit: Dictionary = space.intersect_ray(query)
		var theirs: String = "nothing"
		var their_distance: float = _rules.eye_range
		if hit:
			theirs = "agent" if hit.collider == arena.bodies[1 - i] else "wall"
			their_distance = query.from.distance_to(hit.position)
		var ours: String = "nothing"
		var distance: float = minf(eyes.wall[ray], eyes.body[ray])
		if distance <= _rules.eye_range:
			ours = "agent" if eyes.body[ray] < eyes.wall[ray] else "wall"
		distance = minf(distance, _rules.eye_range)
		met[ours] += 1
		if ours != theirs or absf(distance - their_distance) > 0.01:
			differing.append("%s at %f, Jolt %s at %f" % [ours, distance, theirs, their_distance])
	return differing


func _ray(game: TagMatch, agent: int, ray: int) -> PackedFloat32Array:
	var first: int = TagObservation.rays + TagObservation.RAY_CHANNELS * ray
	return game.observations[agent].slice(first, first + 3)


func _rays_on_agent(game: TagMatch, agent: int) -> int:
	var count: int = 0
	for ray: int in _rules.rays:
		count += int(_ray(game, agent, ray)[2])
	return count
