extends TagTest
## A person against trained policies, and policies among themselves: Godot alone plays.

const SCENE: PackedScene = preload("res://scenes/Play.tscn")
const MAIN: PackedScene = preload("res://scenes/Main.tscn")

var _scene: Node
var _game: TagPlay


func _exit_tree() -> void:
	TagLook.wanted = false
	Input.flush_buffered_events()


func test_every_level_has_a_policy_for_each_role() -> void:
	var rules: TagRules = TagRules.read()
	var levels: TagLevels = TagLevels.read()
	check_equal(levels.error, "", "what is wrong with the levels")
	check_equal(levels.names.size(), 5, "levels")
	check_equal([levels.names[0], levels.names[-1]], ["untrained", "champion"], "first and last")
	for level: String in levels.names:
		for role: String in TagPair.ROLES:
			var path: String = levels.path_of(level, role)
			check_equal(TagPolicy.new(path, role, rules).error, "", path)
			check(FileAccess.get_file_as_bytes(path).size() < 200000, "%s is small" % path)


func test_policies_act_alike_alone_and_together() -> void:
	var rules: TagRules = TagRules.read()
	var path: String = TagLevels.read().path_of("champion", "hider")
	var policy: TagPolicy = TagPolicy.new(path, "hider", rules)
	var seen: Array[PackedFloat32Array] = []
	for number: int in 7:
		var game: TagMatch = TagMatch.new(rules, [TagLayout.read("colonnade", rules)], 1, number)
		game.begin(0)
		seen.append(game.observations[1])
	var together: Array[PackedFloat32Array] = policy.act_all(seen)
	var kinds: Dictionary[PackedFloat32Array, bool] = {}
	for index: int in seen.size():
		check_equal(together[index], policy.act(seen[index]), "agent %d" % index)
		check_equal(together[index].size(), 3, "numbers of an action")
		kinds[together[index]] = true
	check(kinds.size() > 1, "it heeds what it sees")


func test_a_policy_that_does_not_fit_is_refused() -> void:
	var rules: TagRules = TagRules.read()
	var path: String = TagLevels.read().path_of("expert", "seeker")
	var said: String = TagPolicy.new(path, "hider", rules).error
	check_equal(said, path + " was trained as seeker, not as hider", "another role")
	check("there is no file" in TagPolicy.new("res://none.onnx", "seeker", rules).error, "no file")
	rules.observation_version += 1
	check("train it again" in TagPolicy.new(path, "seeker", rules).error, "another version")
	rules.observation_version -= 1
	rules.observation_size += 1
	check("this game gives" in TagPolicy.new(path, "seeker", rules).error, "another size")


func test_an_unknown_player_is_named() -> void:
	var nothing: Dictionary[String, String] = {}
	var options: TagOptions = TagOptions.of(["--hider=ninja"], nothing)
	var pair: TagPair = TagPair.new(options, TagRules.read())
	check("--hider: no player 'ninja'; there are bot:random" in pair.error, pair.error)
	check("champion, and .onnx files" in pair.error, pair.error)


func test_you_play_the_usual_level_and_are_told_so() -> void:
	_start(["--play=hider"])
	await frames(2)
	check_equal(_game.level(), "learner", "the level")
	check_equal(_game.players, {"seeker": "learner", "hider": "you"}, "players")
	check_equal(_game.title, "You hide: run from the red cube", "the title")
	await frames(20)
	var game: TagMatch = _game.arenas[0].game
	var you: Vector2 = Vector2(game.agents[1].velocity_x, game.agents[1].velocity_z)
	var other: Vector2 = Vector2(game.agents[0].velocity_x, game.agents[0].velocity_z)
	check_equal(you, Vector2.ZERO, "you, who press nothing")
	check(other.length() > 1.0, "the policy runs")


func test_keys_change_the_level_and_the_role_and_begin_anew() -> void:
	_start(["--play=seeker", "--level=untrained"])
	await frames(12)
	_game.episode_ended.emit(0, _won(0))
	await frames(2)
	check_equal(_card(0).score, 1, "the score")
	await strike(KEY_5)
	check_equal(_game.players, {"seeker": "you", "hider": "champion"}, "players after 5")
	check_equal(_card(0).score, 0, "the score against another")
	check(_game.arenas[0].game.tick < 12, "a new match")
	check_equal(_pressed(), ["5   champion"], "the level that is marked")
	await strike(KEY_X)
	check_equal(_game.players, {"seeker": "champion", "hider": "you"}, "players after X")
	await strike(KEY_KP_2)
	check_equal(_game.players, {"seeker": "beginner", "hider": "you"}, "players after 2")
	await strike(KEY_9)
	check_equal(_game.level(), "beginner", "a key that means nothing")


func test_without_a_screen_two_policies_play() -> void:
	_start(["--level=expert"], false)
	await frames(30)
	check_equal(_game.players, {"seeker": "expert", "hider": "expert"}, "players")
	for agent: TagAgent in _game.arenas[0].game.agents:
		check(Vector2(agent.velocity_x, agent.velocity_z).length() > 0.1, "it runs")


func test_a_role_may_be_given_to_any_policy_in_the_main_scene() -> void:
	TagLook.wanted = false
	var nothing: Dictionary[String, String] = {}
	var scene: Node = MAIN.instantiate()
	var game: TagGame = scene.get_node("Game")
	var words: PackedStringArray = ["--arenas=3", "--play=nobody", "--seeker=champion"]
	words.append("--hider=res://tag/policies/beginner_hider.onnx")
	game.options = TagOptions.of(words, nothing)
	add_child(scene)
	await frames(30)
	for arena: TagArena in game.arenas:
		for agent: TagAgent in arena.game.agents:
			check(Vector2(agent.velocity_x, agent.velocity_z).length() > 0.1, "it runs")


## The scene, as if started with these words after `--`.
func _start(words: PackedStringArray, is_seen: bool = true) -> void:
	TagLook.wanted = is_seen
	var nothing: Dictionary[String, String] = {}
	_scene = SCENE.instantiate()
	_game = _scene.get_node("Game")
	_game.options = TagOptions.of(words, nothing)
	add_child(_scene)


func _won(winner: int) -> TagMatch:
	var game: TagMatch = _game.arenas[0].game
	game.winner = winner
	return game


func _card(side: int) -> TagCard:
	return _scene.get_node("View/Hud/" + ("FirstCard" if side == 0 else "SecondCard"))


func _pressed() -> Array[String]:
	var found: Array[String] = []
	for node: Node in _scene.get_node("Menu").find_children("*", "Button", true, false):
		if (node as Button).button_pressed:
			found.append((node as Button).text)
	return found
