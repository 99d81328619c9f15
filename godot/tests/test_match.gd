extends TagTest
## The course of a match, to the tick: tags, immunity, the end by time, who wins, and chance.

const NEAR: PackedFloat64Array = [1.05, 0.501, 0.0]
const CENTRE: PackedFloat64Array = [0.0, 0.501, 0.0]
const CORNER: PackedFloat64Array = [-9.0, 0.501, -9.0]
const OTHER_CORNER: PackedFloat64Array = [9.0, 0.501, 9.0]

var _seek: TagRules = tick_rules("seek")
var _transfer: TagRules = tick_rules("transfer")
var _reach: float = sqrt(_seek.reach_square)


func test_a_tag_is_a_gap_no_wider_than_the_reach() -> void:
	for over: float in [0.0, 0.000001]:
		var game: TagMatch = staged(_seek, "empty", CENTRE, [1.0 + _reach + over, 0.501, 0.0])
		play(game, 1)
		var expected: TagMatch.End = TagMatch.End.GOING_ON if over else TagMatch.End.TAGGED
		check_equal(game.end, expected, "reach and %f more" % over)


func test_the_gap_is_measured_across_corners_and_heights() -> void:
	for share: float in [0.999, 1.01]:
		var side: float = 1.0 + _reach / sqrt(2.0) * share
		var game: TagMatch = staged(_seek, "empty", CENTRE, [side, 0.501, side])
		play(game, 1)
		check_equal(game.end == TagMatch.End.TAGGED, share < 1.0, "across the corner")
	var above: TagMatch = staged(_seek, "empty", CENTRE, [0.0, 0.501 + 1.01 + _reach, 0.0])
	above.agents[1].on_floor = false
	play(above, 1)
	check_equal(above.end, TagMatch.End.GOING_ON, "too high")
	above.agents[1].velocity_y = -8.0
	play(above, 1)
	check_equal(above.end, TagMatch.End.TAGGED, "fallen into reach")


func test_seek_ends_at_the_tag_and_the_seeker_wins() -> void:
	for seeker: int in 2:
		var game: TagMatch = staged(_seek, "empty", CENTRE, [3.0, 0.501, 0.0])
		game.seeker = seeker
		while game.end == TagMatch.End.GOING_ON and game.tick < 60:
			play(game, 1, act(1.0, 0.0), act(-1.0, 0.0))
		check_equal(game.end, TagMatch.End.TAGGED, "end")
		check_equal(game.winner, seeker, "winner")
		check_near(game.rewards[seeker], 10.0, 0.2, "the seeker's reward")
		check_near(game.rewards[1 - seeker], -10.0, 0.2, "the hider's reward")


func test_a_decision_stops_at_the_tick_of_the_tag() -> void:
	_seek.decision_ticks = 30
	var game: TagMatch = staged(_seek, "empty", CENTRE, [3.0, 0.501, 0.0])
	game.agents[0].velocity_x = 8.0
	var ticks: int = ceili((2.0 - _reach) / (8.0 / 60.0))
	play(game, 1, act(1.0, 0.0))
	check_equal([game.end, game.tick], [TagMatch.End.TAGGED, ticks], "end and tick")


func test_the_hider_wins_at_exactly_the_time_limit() -> void:
	var game: TagMatch = staged(_seek, "empty", CORNER, OTHER_CORNER)
	play(game, 599)
	check_equal([game.end, game.tick], [TagMatch.End.GOING_ON, 599], "a tick before")
	play(game, 1)
	check_equal([game.end, game.tick], [TagMatch.End.TIMED_OUT, 600], "at the limit")
	check_equal(game.winner, 1, "winner")
	check_equal(game.rewards, PackedFloat64Array([-10.0, 10.0]), "rewards")


func test_a_tag_in_the_last_tick_counts() -> void:
	var game: TagMatch = staged(_seek, "empty", CORNER, [-8.0, 0.501, -7.95])
	game.tick = 599
	play(game, 1)
	check_equal([game.end, game.winner], [TagMatch.End.TAGGED, 0], "end and winner")


func test_transfer_hands_over_the_role_and_gives_immunity_to_the_tick() -> void:
	var game: TagMatch = staged(_transfer, "empty", CENTRE, NEAR)
	var swaps: Array[int] = []
	for tick: int in range(1, 300):
		var before: int = game.seeker
		play(game, 1)
		check_equal(game.end, TagMatch.End.GOING_ON, "end at tick %d" % tick)
		if game.seeker != before:
			swaps.append(tick)
			check_equal(game.agents[0].immune_ticks, 90, "immunity of the first")
			check_equal(game.agents[1].immune_ticks, 90, "immunity of the second")
	check_equal(swaps, [1, 91, 181, 271] as Array[int], "ticks of the tags")


func test_immunity_and_role_show_in_the_observation() -> void:
	var game: TagMatch = staged(_transfer, "empty", CENTRE, NEAR)
	play(game, 1)
	check_equal([game.observations[0][8], game.observations[0][9]], [0.0, 1.0], "was tagging")
	check_equal([game.observations[1][8], game.observations[1][9]], [1.0, 0.0], "was tagged")
	game.agents[1].x = 8.0
	for tick: int in range(1, 95):
		play(game, 1)
		for i: int in 2:
			check_equal(game.observations[i][11], 1.0 if tick < 90 else 0.0, "tick %d" % tick)


func test_transfer_is_won_by_who_was_it_for_less_time() -> void:
	var winners: Dictionary[int, int] = {299: 0, 300: TagMatch.NOBODY, 301: 1}
	for first: int in winners:
		var game: TagMatch = staged(_transfer, "empty", CORNER, OTHER_CORNER)
		game.tick = 599
		game.seeker = 1
		game.agents[0].it_ticks = first
		game.agents[1].it_ticks = 599 - first
		play(game, 1)
		check_equal(game.end, TagMatch.End.TIMED_OUT, "end")
		check_equal(game.agents[1].it_ticks, 600 - first, "ticks as seeker")
		check_equal(game.winner, winners[first], "winner after %d ticks" % first)
		if game.winner == TagMatch.NOBODY:
			check_equal(game.rewards, PackedFloat64Array([0.0, 0.0]), "rewards of a draw")


func test_a_new_episode_starts_from_nothing() -> void:
	var game: TagMatch = staged(_transfer, "empty", CENTRE, NEAR)
	play(game, 40, act(1.0, 0.3, 1.0), act(-1.0, 0.2, 1.0))
	check_equal(game.seeker, 1, "the role was handed over")
	game.begin(1)
	check_equal([game.episode, game.tick, game.seeker], [1, 0, 0], "counters")
	check_equal([game.end, game.winner], [TagMatch.End.GOING_ON, TagMatch.NOBODY], "outcome")
	for i: int in 2:
		var agent: TagAgent = game.agents[i]
		check_equal(agent.y, _transfer.stop_floor, "height")
		check_equal(
			[agent.velocity_x, agent.velocity_y, agent.velocity_z], [0.0, 0.0, 0.0], "speed"
		)
		check_equal([agent.immune_ticks, agent.it_ticks, agent.on_floor], [0, 0, true], "flags")
		check_equal(game.observations[i][12], 1.0, "time left")
	var fresh: TagMatch = TagMatch.new(_transfer, [TagLayout.read("empty", _transfer)])
	fresh.begin(1)
	check_equal(_state(game), _state(fresh), "an episode does not depend on the one before")


func test_spawns_are_free_and_apart() -> void:
	var layouts: Array[TagLayout] = []
	for name: String in ["playground", "central_cross", "four_corners", "empty"]:
		layouts.append(TagLayout.read(name, _seek))
	var game: TagMatch = TagMatch.new(_seek, layouts, 5)
	var shown: Dictionary[int, bool] = {}
	for episode: int in 200:
		game.begin(episode)
		shown[game.layout_index] = true
		var one: TagAgent = game.agents[0]
		check(one.distance_to(game.agents[1]) >= 6.0, "episode %d: too close" % episode)
		for agent: TagAgent in game.agents:
			check(absf(agent.x) <= 9.499 and absf(agent.z) <= 9.499, "outside the walls")
			check(not _is_in_a_box(agent, layouts[game.layout_index]), "in a box")
			var facing: float = (
				agent.forward_x * agent.forward_x + agent.forward_z * agent.forward_z
			)
			check_near(facing, 1.0, 1e-12, "length of the facing")
	check_equal(shown.size(), 4, "layouts played on")


func test_the_second_agent_can_begin_as_seeker() -> void:
	var game: TagMatch = TagMatch.new(_seek, [TagLayout.read("empty", _seek)], 0, 0, 1)
	for episode: int in 3:
		game.begin(episode)
		check_equal(game.seeker, 1, "seeker")
		check_equal([game.observations[0][8], game.observations[1][8]], [0.0, 1.0], "is_seeker")


func test_the_same_seed_gives_the_same_bits() -> void:
	check_equal(_history(3, 0), _history(3, 0), "two runs of one seed")


func test_another_seed_arena_or_episode_gives_another_game() -> void:
	var histories: Dictionary[PackedByteArray, String] = {}
	for name: Array in [[3, 0, 0], [4, 0, 0], [3, 1, 0], [3, 0, 1]]:
		var history: PackedByteArray = _history(name[0], name[1], name[2])
		check(not histories.has(history), "%s is as %s" % [name, histories.get(history, "")])
		histories[history] = str(name)


## Everything that happens in an episode between two random players.
func _history(match_seed: int, arena: int, episode: int = 0) -> PackedByteArray:
	var rules: TagRules = TagRules.read("transfer")
	var layouts: Array[TagLayout] = [
		TagLayout.read("playground", rules), TagLayout.read("four_corners", rules)
	]
	var game: TagMatch = TagMatch.new(rules, layouts, match_seed, arena)
	var bot: TagBot = TagBot.new(TagBot.Kind.RANDOM, rules)
	game.begin(episode)
	var history: PackedByteArray = _state(game)
	while game.end == TagMatch.End.GOING_ON:
		game.decide(bot.act(game.observations[0]), bot.act(game.observations[1]))
		history.append_array(_state(game))
		history.append_array(game.terms[0].to_byte_array())
		history.append_array(game.terms[1].to_byte_array())
		history.append_array(game.rewards.to_byte_array())
	return history


## Where everything stands, and what both see.
func _state(game: TagMatch) -> PackedByteArray:
	var bits: PackedByteArray = [game.layout_index, game.seeker, game.end, game.winner & 0xFF]
	for i: int in 2:
		bits.append_array(game.agents[i].numbers().to_byte_array())
		bits.append_array(game.observations[i].to_byte_array())
	return bits


func _is_in_a_box(agent: TagAgent, layout: TagLayout) -> bool:
	for index: int in layout.count:
		var centre: Vector3 = layout.centre(index)
		var room: Vector3 = 0.5 * layout.extent(index) + 0.5 * Vector3.ONE
		if absf(agent.x - centre.x) < room.x and absf(agent.z - centre.z) < room.z:
			return true
	return false
