extends TagTest
## Replays: what was logged is what is shown, and the keys that steer it.

const SCENE: PackedScene = preload("res://scenes/Replay.tscn")
const WHO: Dictionary[String, String] = {"seeker": "bot:chaser", "hider": "bot:evader"}

var _folder: String = "user://test_replay_%d" % OS.get_process_id()
## The agents' numbers at every logged tick of the match that was logged last.
var _logged: Dictionary[int, Array] = {}


func _init() -> void:
	DirAccess.make_dir_recursive_absolute(_folder)


func _exit_tree() -> void:
	for file: String in DirAccess.get_files_at(_folder):
		DirAccess.remove_absolute(_folder.path_join(file))
	DirAccess.remove_absolute(_folder)


func test_a_logged_tick_is_shown_to_the_bit() -> void:
	for rule_set: String in ["seek", "transfer", "hide"]:
		var replay: TagReplay = await _open(_log("match.jsonl", 3, rule_set))
		var game: TagMatch = replay.arenas[0].game
		for tick: int in _logged:
			replay.hold(tick / 60.0)
			await _drawn()
			check_equal(game.tick, tick, "tick")
			check_equal([game.seeker, game.end, game.winner], _logged[tick][2], "tick %d" % tick)
			for i: int in 2:
				var agent: TagAgent = game.agents[i]
				check_equal(agent.numbers().slice(0, 8), _logged[tick][i], "tick %d" % tick)
				var at: Vector3 = Vector3(agent.x, agent.y, agent.z)
				check_equal(replay.arenas[0].bodies[i].position, at, "body")
				check_equal(game.observations[i].slice(18), _logged[tick][3][i], "rays")
		replay.get_parent().free()


func test_between_ticks_agents_keep_to_the_way_between() -> void:
	var replay: TagReplay = await _open(_log("match.jsonl", 4, "seek"))
	var game: TagMatch = replay.arenas[0].game
	var ticks: Array = _logged.keys()
	for moment: int in ticks.size() - 1:
		var from: Array = _logged[ticks[moment]]
		var to: Array = _logged[ticks[moment + 1]]
		for share: float in [0.25, 0.5, 0.9]:
			replay.hold(lerpf(ticks[moment], ticks[moment + 1], share) / 60.0)
			await _drawn()
			for i: int in 2:
				var shown: PackedFloat64Array = game.agents[i].numbers()
				for axis: int in 3:
					var low: float = minf(from[i][axis], to[i][axis])
					var high: float = maxf(from[i][axis], to[i][axis])
					check(low <= shown[axis] and shown[axis] <= high, "beyond both places")
				var before: float = atan2(from[i][6], from[i][7])
				var turn: float = angle_difference(before, atan2(to[i][6], to[i][7]))
				var shown_turn: float = angle_difference(before, atan2(shown[6], shown[7]))
				check_near(shown_turn, share * turn, 1e-9, "an even turn")


func test_a_cubic_goes_through_places_and_velocities() -> void:
	var path: String = _write([[0, [0.0, 2.0], [3.0, -1.0]], [6, [0.1, 1.0], [0.0, 4.0]]])
	var replay: TagReplay = await _open(path)
	replay.hold(2.0 / 60.0)
	await _drawn()
	var share: float = 1.0 / 3.0
	var agent: TagAgent = replay.arenas[0].game.agents[0]
	var swing: float = 0.1 * share * (1.0 - share) ** 2
	var x: float = 0.1 * share ** 2 * (3.0 - 2.0 * share) + 3.0 * swing
	check_near(agent.x, minf(x, 0.1), 1e-12, "along x, not beyond the end")
	var z: float = 2.0 - share ** 2 * (3.0 - 2.0 * share) - swing
	z -= 4.0 * 0.1 * share ** 2 * (1.0 - share)
	check_near(agent.z, z, 1e-12, "along z")
	check_near(agent.velocity_x, 2.0, 1e-12, "velocity")


func test_a_match_ends_and_tells_it_once() -> void:
	var replay: TagReplay = await _open(_log("match.jsonl", 3, "seek"))
	var ends: Array[int] = []
	replay.episode_ended.connect(func(_arena: int, game: TagMatch) -> void: ends.append(game.end))
	var last: float = _logged.keys()[-1] / 60.0
	for second: float in [last - 0.5, last - 0.01, last, last + 0.5, last + 1.0]:
		replay.hold(second)
		await _drawn()
		check_equal(replay.arenas[0].game.end != TagMatch.End.GOING_ON, second >= last, "over")
	check_equal(ends.size(), 1, "told")
	check_equal(replay.moment(), last, "the match's time stands still")
	replay.seek(0.0)
	await _drawn()
	check_equal(replay.arenas[0].game.end, TagMatch.End.GOING_ON, "going on again")
	check_equal(replay.arenas[0].game.winner, TagMatch.NOBODY, "nobody has won yet")


func test_keys_pause_seek_step_and_change_the_pace() -> void:
	var replay: TagReplay = await _open(_log("match.jsonl", 3, "seek"))
	await frames(4)
	check(replay.second() > 0.0, "it plays")
	await _press(KEY_SPACE)
	var held: float = replay.second()
	await frames(3)
	check_equal(replay.second(), held, "paused")
	await _press(KEY_RIGHT)
	check_near(replay.second(), held + 1.0, 1e-9, "a second on")
	await _press(KEY_LEFT)
	check_near(replay.second(), held, 1e-9, "a second back")
	await _press(KEY_PERIOD)
	var tick: int = roundi(replay.second() * 60.0)
	check_equal(replay.second(), tick / 60.0, "on a tick")
	check_equal(tick, roundi(held * 60.0) + 1, "the next tick")
	await _press(KEY_COMMA)
	check_equal(roundi(replay.second() * 60.0), tick - 1, "the tick before")
	await _press(KEY_END)
	check_equal(replay.second(), replay.seconds(), "the end")
	await _press(KEY_HOME)
	check_equal(replay.second(), 0.0, "the beginning")
	for wanted: float in [2.0, 4.0, 4.0]:
		await _press(KEY_UP)
		check_equal(replay.speed, wanted, "faster")
	for wanted: float in [2.0, 1.0, 0.5, 0.25, 0.1, 0.1]:
		await _press(KEY_DOWN)
		check_equal(replay.speed, wanted, "slower")
	replay.speed = 0.3
	await _press(KEY_UP)
	check_equal(replay.speed, 0.5, "from in between up")
	replay.speed = 0.3
	await _press(KEY_DOWN)
	check_equal(replay.speed, 0.25, "from in between down")
	replay.seek(1.0)
	await _press(KEY_R)
	check(replay.playing and replay.second() < 0.1, "again")


func test_speed_is_seconds_to_a_second() -> void:
	var replay: TagReplay = await _open(_log("match.jsonl", 3, "seek"), ["--speed=0.5"])
	var begun: float = replay.second()
	await frames(30)
	check_near(replay.second() - begun, 0.25, 1e-6, "half as fast")


func test_a_timeline_is_clicked() -> void:
	var replay: TagReplay = await _open(_log("match.jsonl", 3, "seek"))
	replay.playing = false
	var timeline: HSlider = replay.get_parent().get_node("Controls/Timeline")
	await _drawn()
	check_equal(timeline.max_value, replay.seconds(), "as long as the match and its end")
	timeline.value = 1.25
	await _drawn()
	check_near(replay.second(), 1.25, 1e-6, "it seeks")
	check_equal(replay.arenas[0].game.tick, 75, "the match follows")


func test_a_folder_is_shown_file_by_file() -> void:
	_log("b.jsonl", 4, "seek")
	_log("a.jsonl", 3, "seek")
	var replay: TagReplay = await _open(_folder)
	var names: Array = []
	for _turn: int in 3:
		names.append(replay.files[replay.file].get_file())
		await _press(KEY_N)
	check_equal(names, ["a.jsonl", "b.jsonl", "b.jsonl"], "the last stays")
	check_equal(replay.arenas[0].game.seed_value, 4, "the match of the file")
	await _press(KEY_P)
	check_equal(replay.file, 0, "back")
	replay.seek(replay.seconds())
	await _drawn()
	await _drawn()
	check_equal(replay.file, 1, "after the end comes the next")
	check(replay.playing, "and plays")


func test_another_layout_and_other_sizes_come_from_the_file() -> void:
	var start: Dictionary = {
		"layout": {"boxes": [{"at_m": [1.0, 2.0], "size_m": [3.0, 1.5, 2.0]}]},
		"arena_size_m": [12.0, 16.0],
		"players": {"seeker": "one", "hider": "two"},
	}
	var path: String = _write([[0, [0.0, 2.0], [0.0, 0.0]], [3, [0.1, 1.0], [0.0, 0.0]]], start)
	var replay: TagReplay = await _open(path, ["--hider-name=three", "--title=Stage 2"])
	check_equal(replay.arenas[0].game.layouts[0].count, 1, "boxes")
	check_equal(replay.arenas[0].game.layouts[0].extent(0), Vector3(3.0, 1.5, 2.0), "extent")
	check_equal([replay.rules.wall_x, replay.rules.wall_z], [6.0, 8.0], "walls")
	check_equal([replay.players.seeker, replay.players.hider], ["one", "three"], "players")
	check_equal(replay.title, "Stage 2", "title")


## Play and log two seconds between bots; the file.
func _log(file: String, seed_value: int, rule_set: String) -> String:
	_logged.clear()
	var rules: TagRules = TagRules.read(rule_set)
	rules.limit_time(2.0)
	var layouts: Array[TagLayout] = [TagLayout.read("colonnade", rules)]
	var game: TagMatch = TagMatch.new(rules, layouts, seed_value)
	var bots: Array[TagBot] = []
	for role: String in ["seeker", "hider"]:
		bots.append(TagBot.new(TagBot.NAMES[WHO[role]], rules))
	game.begin(0)
	var log: TagTrajectory = TagTrajectory.new(game, WHO)
	_remember(game)
	while not log.is_over():
		var actions: Array[PackedFloat32Array] = []
		for i: int in 2:
			actions.append(bots[0 if i == game.seeker else 1].act(game.observations[i]))
		game.decide(actions[0], actions[1])
		log.record_decision()
		_remember(game)
	return _save(file, "\n".join(log.lines))


func _remember(game: TagMatch) -> void:
	_logged[game.tick] = [
		game.agents[0].numbers().slice(0, 8),
		game.agents[1].numbers().slice(0, 8),
		[game.seeker, game.end, game.winner],
		[game.observations[0].slice(18), game.observations[1].slice(18)],
	]


## A match written by hand: tick, place and velocity (x, z) of the first agent.
func _write(moments: Array, start: Dictionary = {}) -> String:
	var lines: PackedStringArray = [JSON.stringify(start.merged({"type": "episode_start"}))]
	for moment: Array in moments:
		for i: int in 2:
			var step: Dictionary = {
				"type": "step",
				"agent": "Agent%d" % (i + 1),
				"tick": moment[0],
				"pos": [moment[1][0] - 3.0 * i, 0.501, moment[1][1]],
				"vel": [moment[2][0], 0.0, moment[2][1]],
				"is_it": i == 0,
			}
			lines.append(JSON.stringify(step))
	lines.append(JSON.stringify({"type": "episode_end", "terminal_reason": "timeout"}))
	return _save("written.jsonl", "\n".join(lines))


func _save(file: String, text: String) -> String:
	var path: String = _folder.path_join(file)
	var stream: FileAccess = FileAccess.open(path, FileAccess.WRITE)
	stream.store_string(text + "\n")
	stream.close()
	return path


func _open(path: String, words: PackedStringArray = []) -> TagReplay:
	var scene: Node = SCENE.instantiate()
	var replay: TagReplay = scene.get_node("Stage")
	replay.options = TagOptions.of(PackedStringArray(["--replay=" + path]) + words, {})
	add_child(scene)
	await _drawn()
	return replay


func _drawn() -> void:
	await get_tree().process_frame
	await get_tree().process_frame


func _press(key: Key) -> void:
	for pressed: bool in [true, false]:
		var event: InputEventKey = InputEventKey.new()
		event.keycode = key
		event.pressed = pressed
		get_viewport().push_input(event)
	await _drawn()
