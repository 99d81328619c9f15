extends TagTest
## Logs of matches: what each record says, and files that are whole or not there.

const SCENE: PackedScene = preload("res://scenes/Main.tscn")
const WHO: Dictionary[String, String] = {"seeker": "bot:chaser", "hider": "you"}

var _folder: String = "user://test_trajectory_%d" % OS.get_process_id()
var _game: TagGame


func _exit_tree() -> void:
	var files: String = _folder.path_join("trajectories")
	for file: String in _files():
		DirAccess.remove_absolute(files.path_join(file))
	DirAccess.remove_absolute(files)
	DirAccess.remove_absolute(_folder)


func test_the_first_record_says_which_match_it_is() -> void:
	var rules: TagRules = TagRules.read()
	var layouts: Array[TagLayout] = [TagLayout.read("playground", rules)]
	var game: TagMatch = TagMatch.new(rules, layouts, 7, 3, 1)
	game.begin(4)
	var start: Dictionary = _records(TagTrajectory.new(game, WHO))[0]
	check_equal([start.type, start.engine, start.rules], ["episode_start", "godot", "seek"], "what")
	check_equal(
		[start.format, start.seed, start.arena, start.episode], [1.0, 7.0, 3.0, 4.0], "which"
	)
	check_equal(start.layout.name, "playground", "layout")
	var box: Dictionary = {"at_m": [-4.5, -4.5], "size_m": [3.0, 1.1, 3.0]}
	check_equal(start.layout.boxes[0], box, "first box")
	check_equal(start.layout.boxes.size(), 5, "boxes")
	check_equal(start.eyes.fan_deg, 120.0, "fan")
	check_equal(start.seeker, "Agent2", "seeker")
	check_equal(start.players, {"seeker": "bot:chaser", "hider": "you"}, "players")


func test_every_decision_leaves_a_record_of_each_agent() -> void:
	var game: TagMatch = _match("empty", [-5.0, 0.501, 0.0], [5.0, 0.501, 0.0])
	var log: TagTrajectory = TagTrajectory.new(game, WHO)
	for _decision: int in 4:
		game.decide(act(1.0, 0.0), act(0.0, 1.0, 1.0))
		log.record_decision()
	var records: Array[Dictionary] = _records(log)
	check_equal(records.size(), 1 + 2 * 5, "records")
	for moment: int in 5:
		for i: int in 2:
			var step: Dictionary = records[1 + 2 * moment + i]
			check_equal([step.type, step.agent], ["step", "Agent%d" % (i + 1)], "who")
			check_equal([step.tick, step.ts], [3.0 * moment, 3.0 * moment / 60.0], "when")
			check_equal([step.is_it, step.on_floor], [i == 0, i == 0 or moment == 0], "facts")
			check_equal([step.dists.size(), step.types.size()], [36, 36], "rays")
	check_near(records[-2].pos[0], game.agents[0].x, 1e-9, "where it is")
	check_near(records[-1].vel[1], game.agents[1].velocity_y, 1e-9, "how fast it is")
	check(2.0 in records[1].types or 1.0 in records[1].types, "something is seen")


func test_a_tag_ends_the_log() -> void:
	var game: TagMatch = _match("empty", [0.0, 0.501, 0.0], [1.5, 0.501, 0.0])
	var log: TagTrajectory = TagTrajectory.new(game, WHO)
	while not log.is_over():
		game.decide(act(1.0, 0.0), act())
		log.record_decision()
	var records: Array[Dictionary] = _records(log)
	var tag: Dictionary = records[-4]
	check_equal([tag.type, tag.attacker, tag.target], ["tag", "Agent1", "Agent2"], "the tag")
	check_equal([tag.tick, records[-2].tick], [float(game.tick), float(game.tick)], "its tick")
	check_equal(records[-1].winner, "Agent1", "winner")
	check_equal(records[-1].terminal_reason, "tag", "reason")


func test_a_tag_inside_a_decision_has_its_own_tick() -> void:
	var rules: TagRules = TagRules.read("transfer")
	# from rest a chaser comes 6 mm closer in the first tick, 17 mm until the second, then 33 mm
	var ways: Array[float] = [0.003, 0.01, 0.025]
	for way: float in ways:
		var x: float = rules.size + sqrt(rules.reach_square) + way
		var game: TagMatch = staged(rules, "empty", [0.0, 0.501, 0.0], [x, 0.501, 0.0])
		var log: TagTrajectory = TagTrajectory.new(game, WHO)
		game.decide(act(1.0, 0.0), act())
		log.record_decision()
		var tags: Array[Dictionary] = _of_type(_records(log), "tag")
		check_equal(tags.size(), 1, "tags")
		check_equal(tags[0].tick, 1.0 + ways.find(way), "the tick of a tag %f m away" % way)
		check_equal([tags[0].attacker, tags[0].target], ["Agent1", "Agent2"], "who")


func test_an_agent_where_none_can_be_is_flagged() -> void:
	var game: TagMatch = _match("playground", [8.0, 0.501, 8.0], [-8.0, 0.501, -8.0])
	var places: Dictionary[String, PackedFloat64Array] = {
		"": [9.5, 0.501, 0.0],
		"0.000002 m inside a wall": [9.5 + 0.000002, 0.501, 0.0],
		"0.100000 m inside a wall": [0.0, 0.501, -9.6],
		"0.100000 m inside the floor": [9.0, 0.4, 9.0],
		"0.001000 m inside box 4": [0.0, 1.1 + 0.5 - 0.001, 0.0],
		"1.001000 m inside box 0": [-4.5, 0.501, -4.5],
		"a number is not finite": [NAN, 0.501, 0.0],
	}
	for what: String in places:
		place(game.agents[1], places[what], game.rules)
		check_equal(TagTrajectory.anomaly(game.agents[1], game), what, "at %s" % places[what])
	var records: Array[Dictionary] = _records(TagTrajectory.new(game, WHO))
	var flagged: Array[Dictionary] = _of_type(records, "physics_anomaly")
	check_equal(flagged.size(), 1, "flagged")
	check_equal([flagged[0].agent, flagged[0].tick], ["Agent2", 0.0], "who and when")
	check_equal(records[3].pos, [null, 0.501, 0.0], "JSON has no NaN")


func test_the_game_logs_every_match_whole() -> void:
	_start(["--arenas=2", "--seed=5"])
	while _game.arenas[0].game.episode < 1 or _game.arenas[1].game.episode < 1:
		await frames(1)
		for file: String in _files():
			check(file.begins_with("ep_"), "only whole files, not " + file)
	check_equal(_files().size(), 2, "files")
	for file: String in _files():
		var path: String = _folder.path_join("trajectories").path_join(file)
		var lines: PackedStringArray = FileAccess.get_file_as_string(path).split("\n")
		check_equal(lines[-1], "", "the last line is ended")
		var last: Dictionary = JSON.parse_string(lines[-2])
		check_equal(last.type, "episode_end", "the last record")
	_game.restart()
	await frames(9)
	check_equal(_files().size(), 2, "a match that is broken off leaves none")


func test_a_name_that_is_taken_gets_a_number() -> void:
	var game: TagMatch = _match("empty", [0.0, 0.501, 0.0], [1.05, 0.501, 0.0])
	var log: TagTrajectoryLog = TagTrajectoryLog.new(_folder.path_join("trajectories"), WHO)
	check_equal(log.prepare(), "", "problem")
	var names: Dictionary[String, bool] = {}
	for _try: int in 3:
		game.begin(0)
		place(game.agents[0], [0.0, 0.501, 0.0], game.rules)
		place(game.agents[1], [1.05, 0.501, 0.0], game.rules)
		log.begin(0, game)
		game.decide(act(), act())
		log.record(0)
	for file: String in _files():
		names[file] = true
	check_equal(names.size(), 3, "files, none written over: %s" % names)


func test_nothing_is_logged_unless_asked_for() -> void:
	_start([], "0")
	_game.arenas[0].game.tick = 597
	await frames(6)
	check_equal(_files().size(), 0, "files")


func test_a_folder_that_cannot_be_made_is_told() -> void:
	allow_error("Could not create directory")
	var log: TagTrajectoryLog = TagTrajectoryLog.new("/dev/null/logs", WHO)
	check(log.prepare().begins_with("cannot write into /dev/null/logs"), log.prepare())


## The main scene with these words after `--`, logging.
func _start(words: PackedStringArray, logging: String = "1") -> void:
	var nothing: Dictionary[String, String] = {}
	var scene: Node = SCENE.instantiate()
	_game = scene.get_node("Game")
	words.append_array(["--log-trajectories=" + logging, "--data-root=" + _folder, "--play=nobody"])
	_game.options = TagOptions.of(words, nothing)
	add_child(scene)


func _match(layout: String, one: PackedFloat64Array, other: PackedFloat64Array) -> TagMatch:
	return staged(TagRules.read(), layout, one, other)


func _files() -> PackedStringArray:
	var files: String = _folder.path_join("trajectories")
	if DirAccess.dir_exists_absolute(files):
		return DirAccess.get_files_at(files)
	return []


func _records(log: TagTrajectory) -> Array[Dictionary]:
	var records: Array[Dictionary] = []
	for line: String in log.lines:
		records.append(JSON.parse_string(line))
	return records


func _of_type(records: Array[Dictionary], type: String) -> Array[Dictionary]:
	return records.filter(func(record: Dictionary) -> bool: return record.type == type)
