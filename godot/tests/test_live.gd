extends TagTest
## Live play as somebody watches it: no frame waits, and nothing moves before the actions are there.

const SCENE: PackedScene = preload("res://scenes/Main.tscn")

var _server: FakeServer = FakeServer.new()
var _scene: Node
var _game: TagGame
var _env: RLEnv
var _client: RLClient


func _exit_tree() -> void:
	TagLook.wanted = false


func test_without_being_asked_nobody_connects() -> void:
	add_child(_server)
	_start([])
	await frames(10)
	check_equal([_client.state, _server.clients], [RLClient.State.IDLE, 0], "connections")
	check(_game.driver is TagPlayers, "who plays")
	check_equal(_game.note, "", "note")


func test_the_game_advances_only_with_actions() -> void:
	await _start_live([], {"training_mode": "1"})
	var game: TagMatch = _game.arenas[0].game
	check_equal(game.tick, 0, "ticks before the first answer")
	await frames(10)
	check_equal(game.tick, 0, "ticks without an answer")
	for decision: int in 5:
		_server.answer(1.0, 0.0)
		await until(func() -> bool: return _server.heard.size() == decision + 3)
		await frames(10)
		check_equal(_server.heard.size(), decision + 3, "one question a decision")
		check_equal(game.tick, 3 * (decision + 1), "ticks")
		check_equal(_server.heard.back().decode_u32(4), decision + 1, "seq")
		check_equal(_server.heard.back()[1], 1, "with results")
	check(game.agents[0].velocity_x > 0.5, "it runs as it was told")


func test_without_training_no_results_are_sent() -> void:
	await _start_live(["--live=1"], {})
	for decision: int in 3:
		_server.answer(0.0, 1.0)
		await until(func() -> bool: return _server.heard.size() == decision + 3)
		check_equal(_server.heard.back()[1], 0, "flags")


func test_the_picture_tells_how_things_are() -> void:
	TagLook.wanted = true
	await _start_live([], {"training_mode": "1"})
	await frames(2)
	check_equal(_label("Note").text, "connected: learning, 7 steps so far", "note")
	check_equal(_label("Title").text, "live training", "title")
	check_equal(_game.players.values(), ["learner", "learner"], "players")
	check(not _game.driver.may_restart(), "restart")
	_server.hang_up(1001, "the server stops")
	await until(func() -> bool: return _client.state == RLClient.State.WAITING)
	await frames(2)
	check(_label("Note").text.contains("the server stops): bots play"), _label("Note").text)
	check_equal(_game.players.values(), ["bot:chaser", "bot:evader"], "players")


func test_without_a_server_bots_play_until_one_is_there() -> void:
	_start(["--live=1", "--server=ws://127.0.0.1:1"])
	var game: TagMatch = _game.arenas[0].game
	await until(func() -> bool: return game.tick > 30)
	check(_game.note.begins_with("no server: bots play; trying "), _game.note)
	_client.url = _server.url()
	add_child(_server)
	await until(func() -> bool: return _server.heard.size() == 1)
	_server.welcome()
	await until(func() -> bool: return _server.heard.size() == 2)
	var tick: int = game.tick
	check_equal([_server.heard[1][1], tick > 30], [0, true], "it goes on where it was")
	_server.answer(0.0, 0.0)
	await until(func() -> bool: return _server.heard.size() == 3)
	check_equal(game.tick, tick + 3, "one decision later")


func test_a_game_that_finds_a_server_lets_it_play() -> void:
	add_child(_server)
	_start([], {}, true)
	await until(func() -> bool: return _server.heard.size() == 1)
	check_equal(_game.players, {"seeker": "bot:chaser", "hider": "bot:evader"}, "players")
	check_equal([_game.title, _game.note], ["", ""], "nothing to tell yet")
	check(_game.driver.may_restart(), "restart")
	_server.welcome()
	await until(func() -> bool: return _server.heard.size() == 2)
	var hello: Dictionary = JSON.parse_string(_server.heard[0])
	check_equal([hello.training, hello.controlled], [false, [true, true]], "hello")
	check_equal(_game.players.values(), ["learner", "learner"], "players")
	check(_game.note.begins_with("connected: "), _game.note)
	_server.hang_up(1001, "the server stops")
	var tick: int = _game.arenas[0].game.tick
	await until(func() -> bool: return _game.arenas[0].game.tick > tick + 10)
	check(_game.note.contains("the server stops): playing without it"), _game.note)
	check_equal(_game.players.values(), ["bot:chaser", "bot:evader"], "players")
	check_equal(_game.title, "", "title")


func test_a_game_that_finds_no_server_plays_as_ever() -> void:
	add_child(_server)
	_start(["--server=ws://127.0.0.1:1"], {}, true)
	await until(func() -> bool: return _client.state == RLClient.State.WAITING)
	await until(func() -> bool: return _game.arenas[0].game.tick > 30)
	check_equal([_game.title, _game.note], ["", ""], "nothing to tell")
	check_equal(_client.session, 0, "connections")


func test_the_person_plays_whom_the_server_does_not() -> void:
	add_child(_server)
	_start([], {"control_all_agents": "0"} as Dictionary[String, String], true)
	check_equal(_game.person_plays, "hider", "the second agent")


func test_after_an_episode_there_is_a_rest_for_the_verdict() -> void:
	await _start_live([], {"training_mode": "1"})
	var game: TagMatch = _game.arenas[0].game
	game.tick = 598
	_server.answer(0.0, 0.0)
	await until(func() -> bool: return game.end == TagMatch.End.TIMED_OUT)
	await frames(RLEnv.REST_TICKS - 10)
	check_equal([game.episode, _server.heard.size()], [0, 2], "it rests")
	await until(func() -> bool: return _server.heard.size() == 3)
	check_equal([game.episode, game.tick], [1, 0], "the next episode")
	var results: int = 8 + 8 + 16 * TagRules.reward_terms().size() + 8 + 4 + 1 + 1
	var seen: int = 2 * 126 * 4
	check_equal(_server.heard.back().size(), results + seen + 1 + seen, "with what was seen last")


func test_the_other_agent_may_be_a_bot() -> void:
	var settings: Dictionary[String, String] = {"control_all_agents": "0", "ai_is_it": "0"}
	await _start_live(["--live=1", "--seeker=bot:chaser"], settings)
	check_equal(JSON.parse_string(_server.heard[0]).controlled, [false, true], "controlled")
	var game: TagMatch = _game.arenas[0].game
	check_equal([game.first_seeker, game.seeker], [1, 1], "who is it")
	check_equal(_game.players, {"seeker": "bot:chaser", "hider": "learner"}, "players")
	for decision: int in 12:
		_server.answer(0.0, 0.0)
		await until(func() -> bool: return _server.heard.size() == decision + 3)
	check_equal([game.agents[0].velocity_x, game.agents[0].velocity_z], [0.0, 0.0], "the server's")
	check(absf(game.agents[1].velocity_x) + absf(game.agents[1].velocity_z) > 0.1, "the bot runs")


func test_an_answer_that_does_not_come_is_not_waited_for_for_ever() -> void:
	await _start_live([], {"training_mode": "1"})
	_env.step_timeout_sec = 0.5
	await until(func() -> bool: return _client.state == RLClient.State.WAITING)
	await frames(2)
	check(_game.note.begins_with("no actions for decision 0 in 0.5 s: bots play"), _game.note)
	await until(func() -> bool: return _server.heard.size() == 3)
	check_equal(_server.clients, 2, "it tries again")


func test_a_wrong_answer_is_not_played() -> void:
	await _start_live([], {"training_mode": "1"})
	_server.say(PackedByteArray([0x41, 0, 1, 0]))
	await until(func() -> bool: return _client.state == RLClient.State.WAITING)
	await frames(2)
	check(_game.note.begins_with("the server said 4 bytes of actions"), _game.note)


func _start(
	words: PackedStringArray, settings: Dictionary[String, String] = {}, finds_server: bool = false
) -> void:
	var nothing: Dictionary[String, String] = {}
	_scene = SCENE.instantiate()
	_game = _scene.get_node("Game")
	_env = _scene.get_node("RLEnv")
	_client = _scene.get_node("RLClient")
	_game.options = TagOptions.of(words, nothing)
	_game.options.finds_server = finds_server
	_env.variables = settings
	_env.is_watched = true
	_client.url = _server.url()
	add_child(_scene)


## Start with a server that has agreed to binary frames; the first question is there.
func _start_live(words: PackedStringArray, settings: Dictionary[String, String]) -> void:
	add_child(_server)
	_start(words, settings)
	_game.set_physics_process(false)
	while _server.heard.size() < 1:
		_client.poll()
		await frames(1)
	_server.welcome()
	_game.set_physics_process(true)
	await until(func() -> bool: return _server.heard.size() == 2)


func _label(name: String) -> Label:
	return _scene.get_node("View").hud.get_node(name)
