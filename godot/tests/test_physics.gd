extends TagTest
## Movement keeps to the rules: floor, walls, gravity, jump, speed, turning, contact.

const FAR: PackedFloat64Array = [-9.0, 0.501, -9.0]
const WILD: Array[float] = [NAN, INF, -INF, 1e30]

var _rules: TagRules = tick_rules()
var _rest: float = _rules.stop_floor


func test_the_floor_holds_at_the_skin() -> void:
	var game: TagMatch = staged(_rules, "empty", [5.0, 3.0, 5.0], FAR)
	game.agents[0].on_floor = false
	play(game, 120)
	check_equal(game.agents[0].y, _rules.half + _rules.skin, "where it lies")
	check_equal(game.agents[0].velocity_y, 0.0, "its speed")
	check(game.agents[0].on_floor, "it is on the floor")


func test_walls_stop_at_the_skin_and_take_the_speed() -> void:
	for way: float in [1.0, -1.0]:
		var game: TagMatch = staged(_rules, "empty", [0.0, _rest, 0.0], [8.0, _rest, -8.0])
		play(game, 120, act(way, 0.0))
		check_equal(game.agents[0].x, way * (10.0 - 0.5 - 0.001), "x at the wall")
		check_equal(game.agents[0].velocity_x, 0.0, "speed at the wall")
		play(game, 120, act(0.0, way))
		check_equal(game.agents[0].z, way * (10.0 - 0.5 - 0.001), "z in the corner")
		check_equal(game.agents[0].velocity_z, 0.0, "speed in the corner")


func test_walls_have_no_top() -> void:
	var game: TagMatch = staged(_rules, "empty", [9.0, 50.0, 0.0], FAR)
	game.agents[0].on_floor = false
	play(game, 60, act(1.0, 0.0))
	check(game.agents[0].y > 40.0, "it is still falling")
	check_equal(game.agents[0].x, _rules.stop_x, "x high above the wall")


func test_a_fall_follows_gravity() -> void:
	var game: TagMatch = staged(_rules, "empty", [5.0, 9.0, 5.0], FAR)
	game.agents[0].on_floor = false
	for tick: int in range(1, 61):
		play(game, 1)
		var time: float = tick / 60.0
		check_near(game.agents[0].y, 9.0 - 9.8 * time * time / 2.0, 1e-9, "height")
		check_near(game.agents[0].velocity_y, -9.8 * time, 1e-9, "speed")


func test_a_jump_rises_as_high_as_the_rules_say_and_lands() -> void:
	var game: TagMatch = staged(_rules, "empty", [5.0, _rest, 5.0], FAR)
	var highest: float = 0.0
	for tick: int in 90:
		play(game, 1, act(0.0, 0.0, 1.0 if tick == 0 else 0.0))
		highest = maxf(highest, game.agents[0].y - _rest)
	check_near(highest, 5.5 * 5.5 / (2.0 * 9.8), 0.0004, "height of the jump")
	check_equal(game.agents[0].y, _rest, "where it lands")
	check(game.agents[0].on_floor, "it is on the floor again")


func test_nobody_jumps_from_the_air() -> void:
	var game: TagMatch = staged(_rules, "empty", [5.0, _rest, 5.0], FAR)
	for _tick: int in 60:
		play(game, 1, act(0.0, 0.0, 1.0))
		check(game.agents[0].y - _rest <= 5.5 * 5.5 / (2.0 * 9.8), "higher than one jump")


func test_a_jump_needs_more_than_the_threshold() -> void:
	var game: TagMatch = staged(_rules, "empty", [5.0, _rest, 5.0], FAR)
	for ask: float in [0.5, 0.0, -1.0, NAN]:
		play(game, 1, act(0.0, 0.0, ask))
		check_equal(game.agents[0].y, _rest, "after asking with %f" % ask)
	play(game, 1, act(0.0, 0.0, 0.51))
	check(game.agents[0].y > _rest, "it left the floor")


func test_speed_and_acceleration_match_the_rules() -> void:
	var game: TagMatch = staged(_rules, "empty", [-9.0, _rest, 0.0], [9.0, _rest, 9.0])
	for tick: int in range(1, 61):
		play(game, 1, act(1.0, 0.0))
		check_near(game.agents[0].velocity_x, minf(8.0, 20.0 * tick / 60.0), 1e-9, "speed")
	play(game, 1)
	check_near(
		game.agents[0].velocity_x, 8.0 - 20.0 / 60.0, 1e-9, "speed one tick after letting go"
	)


func test_a_diagonal_is_no_faster() -> void:
	var game: TagMatch = staged(_rules, "empty", [-9.0, _rest, -9.0], [9.0, _rest, 9.0])
	play(game, 40, act(1.0, 1.0))
	var agent: TagAgent = game.agents[0]
	var speed: float = sqrt(
		agent.velocity_x * agent.velocity_x + agent.velocity_z * agent.velocity_z
	)
	check_near(speed, 8.0, 1e-6, "speed along the diagonal")


func test_facing_turns_at_a_limited_rate_and_stays_when_idle() -> void:
	var game: TagMatch = staged(_rules, "empty", [0.0, _rest, 0.0], FAR)
	var agent: TagAgent = game.agents[0]
	for tick: int in 30:
		var x: float = agent.forward_x
		var z: float = agent.forward_z
		play(game, 1, act(0.0, -1.0) if tick < 20 else act())
		var cosine: float = x * agent.forward_x + z * agent.forward_z
		check(cosine >= cos(deg_to_rad(720.0 / 60.0)) - 1e-9, "turned further than the rate")
		var norm: float = agent.forward_x * agent.forward_x + agent.forward_z * agent.forward_z
		check_near(norm, 1.0, 1e-12, "length of the facing")
		check(tick != 13 or agent.forward_z > -1.0, "half a turn takes 15 ticks")
	check_equal([agent.forward_x, agent.forward_z], [0.0, -1.0], "facing in the end")


func test_facing_turns_the_shorter_way() -> void:
	for way: float in [1.0, -1.0]:
		var game: TagMatch = staged(_rules, "empty", [0.0, _rest, 0.0], FAR)
		for tick: int in range(1, 8):
			play(game, 1, act(way, 0.0))
			var angle: float = deg_to_rad(12.0 * tick)
			check_near(game.agents[0].forward_x, way * sin(angle), 1e-9, "x at tick %d" % tick)
			check_near(game.agents[0].forward_z, cos(angle), 1e-9, "z at tick %d" % tick)
		play(game, 1, act(way, 0.0))
		check_equal(game.agents[0].forward_x, way, "a quarter turn takes 8 ticks")


func test_wild_actions_do_no_harm() -> void:
	for wild: float in WILD:
		var game: TagMatch = staged(_rules, "empty", [0.0, _rest, 0.0], FAR)
		play(game, 100, act(wild, wild, wild), act(wild, 0.0, wild))
		for agent: TagAgent in game.agents:
			for number: float in agent.numbers():
				check(is_finite(number), "%f after %f" % [number, wild])
			check(absf(agent.x) <= _rules.stop_x and absf(agent.z) <= _rules.stop_z, "outside")


func test_nothing_tunnels_at_any_speed() -> void:
	var game: TagMatch = staged(_rules, "central_cross", [-9.0, _rest, 0.0], FAR)
	game.agents[0].velocity_x = 5000.0
	play(game, 1, act(1.0, 0.0))
	check_near(game.agents[0].x, -5.0 - 0.5 - 0.001, 1e-12, "x before the box")


func test_a_low_box_can_be_climbed_and_a_tall_one_cannot() -> void:
	_climb([-4.5, _rest, -7.5], 1.1 + _rest)
	_climb([-5.0, _rest, 0.5], _rest)


func test_agents_that_run_into_each_other_stop() -> void:
	var game: TagMatch = staged(_rules, "empty", [-3.0, _rest, 0.0], [3.0, _rest, 0.0])
	make_immune(game)
	play(game, 90, act(1.0, 0.0), act(-1.0, 0.0))
	var gap: float = game.agents[1].x - game.agents[0].x - _rules.size
	check(gap > 0.0 and gap <= _rules.skin + 1e-12, "a gap of %f" % gap)
	check_equal(game.agents[0].velocity_x, 0.0, "speed of the first")
	check_equal(game.agents[1].velocity_x, 0.0, "speed of the second")


func test_a_head_is_not_floor() -> void:
	var game: TagMatch = staged(_rules, "empty", [0.0, _rest, 0.0], [0.0, _rest + 1.5, 0.0])
	game.agents[1].on_floor = false
	make_immune(game)
	play(game, 60, act(), act(0.0, 0.0, 1.0))
	check(not game.agents[1].on_floor, "it is not on the floor")
	check_near(game.agents[1].y, _rest + 1.0 + _rules.skin, 1e-9, "height on the head")


func test_a_head_above_the_edge_of_a_box_is_not_floor() -> void:
	var game: TagMatch = staged(_rules, "playground", [-2.9, 1.9, -4.5], [-2.4, 0.75, -4.5])
	make_immune(game)
	for agent: TagAgent in game.agents:
		agent.on_floor = false
	game.agents[0].velocity_y = -30.0
	play(game, 1)
	check_near(game.agents[0].y, 0.75 + 1.0 + _rules.skin, 1e-9, "height on the head")
	check(not game.agents[0].on_floor, "the box below the head does not count")


func _climb(start: PackedFloat64Array, height: float) -> void:
	var game: TagMatch = staged(_rules, "playground", start, [9.0, _rest, 9.0])
	play(game, 90, act(0.0, 0.3))
	check_equal(game.agents[0].velocity_z, 0.0, "speed with the box in the way")
	play(game, 1, act(0.0, 0.3, 1.0))
	play(game, 74, act(0.0, 0.3))
	check(game.agents[0].on_floor, "it has landed")
	check_near(game.agents[0].y, height, 1e-9, "height after the jump")
