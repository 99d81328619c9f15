extends TagTest
## The game as it starts: the main scene, its arenas on their grid, and who plays in them.

const SCENE: PackedScene = preload("res://scenes/Main.tscn")

var _game: TagGame
var _scene: Node
## Ends and winners, by the number of the arena.
var _ends: Array[Dictionary] = []


func test_the_grid_is_centred_and_keeps_its_distance() -> void:
	var rules: TagRules = TagRules.read()
	check_equal(TagGame.grid_place(0, 1, rules), Vector3.ZERO, "a single arena")
	for count: int in [2, 4, 9, 16, 32, 36]:
		var places: Array[Vector3] = []
		var low: Vector3 = Vector3.INF
		var high: Vector3 = -Vector3.INF
		for index: int in count:
			var at: Vector3 = TagGame.grid_place(index, count, rules)
			for other: Vector3 in places:
				var apart: Vector3 = (at - other).abs()
				check(maxf(apart.x, apart.z) >= 24.0, "%d arenas: two overlap" % count)
			places.append(at)
			low = low.min(at)
			high = high.max(at)
		check_equal(low + high, Vector3.ZERO, "centre of %d arenas" % count)
		check(maxf(high.x, high.z) <= 72.0, "%d arenas reach %s" % [count, high])


func test_the_main_scene_starts_with_the_documented_game() -> void:
	_start([])
	await frames(3)
	check_equal(_game.arenas.size(), 1, "arenas")
	var arena: TagArena = _game.arenas[0]
	check_equal(arena.position, Vector3.ZERO, "place")
	check_equal(arena.game.layouts[0].name, "colonnade", "layout")
	check_equal(_game.rules.rule_set, "seek", "rules")
	check_equal(arena.bodies.size(), 2, "bodies")
	check_equal(arena.game.tick, 3, "a tick a frame")
	check_equal(_scene.get_node("Preview").get_child_count(), 0, "the editor's preview")


func test_bodies_follow_the_match_in_every_arena() -> void:
	_start(["--arenas=4", "--layout=central_cross"])
	for _frame: int in 40:
		await frames(1)
		for index: int in 4:
			var arena: TagArena = _game.arenas[index]
			check_equal(arena.position, TagGame.grid_place(index, 4, _game.rules), "place")
			for i: int in 2:
				var agent: TagAgent = arena.game.agents[i]
				var at: Vector3 = Vector3(agent.x, agent.y, agent.z)
				check_equal(arena.bodies[i].position, at, "body %d of arena %d" % [i, index])


func test_arenas_play_different_games() -> void:
	_start(["--arenas=9", "--seed=3"])
	await frames(2)
	var starts: Dictionary[Vector3, int] = {}
	for arena: TagArena in _game.arenas:
		starts[arena.bodies[0].position] = arena.game.number
	check_equal(starts.size(), 9, "different starts")


func test_bots_move_and_meet_and_sometimes_tag() -> void:
	_start(["--arenas=4", "--seed=1"])
	await _play_and_judge(1300, 1.0)
	var tagged: int = _count_tagged()
	check(tagged >= 3, "%d of %d episodes ended with a tag" % [tagged, _ends.size()])


func test_untrained_players_move_and_meet_and_sometimes_tag() -> void:
	_start(
		["--arenas=16", "--seed=3", "--seeker=bot:random", "--hider=bot:random", "--layout=empty"]
	)
	await _play_and_judge(700, 0.3)
	var tagged: int = _count_tagged()
	check(tagged >= 1, "%d of %d episodes ended with a tag" % [tagged, _ends.size()])
	check(tagged < _ends.size(), "all ended with a tag")


func test_the_bots_play_the_other_rules_too() -> void:
	_start(["--arenas=4", "--rules=transfer"])
	var handed_over: int = 0
	var before: Array[int] = [0, 0, 0, 0]
	for _frame: int in 630:
		await frames(1)
		for index: int in 4:
			var seeker: int = _game.arenas[index].game.seeker
			handed_over += int(seeker != before[index])
			before[index] = seeker
	check(handed_over > 0, "a tag handed over the role")
	check_equal(_ends.size(), 4, "episodes ended")
	for ended: Dictionary in _ends:
		check_equal([ended.end, ended.tick], [TagMatch.End.TIMED_OUT, 600], "how they ended")


func test_after_a_rest_the_next_episode_begins() -> void:
	_start(["--seeker=bot:random", "--hider=bot:random"])
	_game.arenas[0].game.tick = 570
	await frames(1 + 30)
	check_equal(_ends.size(), 1, "episodes ended")
	check_equal(_ends[0].winner, 1, "the hider won by time")
	await frames(60)
	check_equal(_game.arenas[0].game.tick, 600, "it rests")
	await frames(60)
	check_equal(_game.arenas[0].game.episode, 1, "the next episode")
	check(_game.arenas[0].game.tick < 60, "its tick")
	check_equal(_ends.size(), 1, "an episode ends once")


func test_restart_cuts_the_rest_short() -> void:
	_start(["--seeker=bot:random", "--hider=bot:random"])
	_game.arenas[0].game.tick = 597
	await frames(10)
	check_equal([_ends.size(), _game.arenas[0].game.tick], [1, 600], "it rests")
	_game.restart()
	await frames(200)
	check_equal([_game.arenas[0].game.episode, _game.arenas[0].game.tick], [1, 200], "it goes on")


func test_restart_begins_the_next_episode_everywhere() -> void:
	_start(["--arenas=3", "--layout=playground,empty"])
	await frames(11)
	var before: PackedFloat64Array = _game.arenas[2].game.agents[0].numbers()
	_game.restart()
	for arena: TagArena in _game.arenas:
		check_equal([arena.game.episode, arena.game.tick], [1, 0], "episode and tick")
	check(_game.arenas[2].game.agents[0].numbers() != before, "new places")
	await frames(4)
	for arena: TagArena in _game.arenas:
		check_equal([arena.game.episode, arena.game.tick], [1, 4], "it goes on")


## The main scene, as if started with these words after `--`.
func _start(words: PackedStringArray) -> void:
	var nothing: Dictionary[String, String] = {}
	_scene = SCENE.instantiate()
	_game = _scene.get_node("Game")
	_game.options = TagOptions.of(words, nothing)
	_game.episode_ended.connect(_on_episode_ended)
	add_child(_scene)


## Play on, and look whether everybody runs and both come close.
func _play_and_judge(ticks: int, least_speed: float) -> void:
	var path: Dictionary[TagAgent, float] = {}
	var last: Dictionary[TagAgent, Vector3] = {}
	var closest: float = INF
	for _tick: int in ticks:
		await frames(1)
		for arena: TagArena in _game.arenas:
			closest = minf(closest, arena.game.agents[0].distance_to(arena.game.agents[1]))
			for agent: TagAgent in arena.game.agents:
				var at: Vector3 = Vector3(agent.x, agent.y, agent.z)
				var step: float = at.distance_to(last.get(agent, at))
				if step < 1.0:  # not a new episode
					path[agent] = path.get(agent, 0.0) + step
				last[agent] = at
	for agent: TagAgent in path:
		var speed: float = path[agent] * 60.0 / ticks
		check(speed > least_speed, "somebody moved at %f m/s" % speed)
	check(closest < 1.5, "they came no closer than %f m" % closest)
	check(_ends.size() >= _game.arenas.size(), "%d episodes ended" % _ends.size())
	for ended: Dictionary in _ends:
		check(ended.winner in [0, 1], "a winner")


func _count_tagged() -> int:
	var tagged: int = 0
	for ended: Dictionary in _ends:
		tagged += int(ended.end == TagMatch.End.TAGGED)
	return tagged


func _on_episode_ended(arena: int, game: TagMatch) -> void:
	_ends.append({"arena": arena, "end": game.end, "winner": game.winner, "tick": game.tick})
