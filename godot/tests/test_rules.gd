extends TagTest
## The game's numbers: what is read, what is derived, and what a wrong name is answered with.

const LAYOUTS: Dictionary[String, int] = {
	"colonnade": 16,
	"playground": 5,
	"central_cross": 4,
	"four_corners": 4,
	"empty": 0,
	"rooms": 20,
	"blocks": 9,
	"house": 16,
}


func test_the_default_game_is_the_documented_one() -> void:
	var rules: TagRules = TagRules.read()
	check_equal(rules.error, "", "error")
	check_equal([rules.rule_set, rules.reward_profile], ["seek", "default"], "defaults")
	check_equal(rules.default_layout, "colonnade", "layout")
	check_equal([rules.speed, rules.acceleration, rules.jump_speed], [8.0, 20.0, 5.5], "agent")
	check_equal([rules.rays, rules.eye_range, rules.eye_height], [36, 15.0, 0.25], "eyes")
	check_equal([rules.limit_ticks, rules.decision_ticks], [600, 3], "episode")
	check(rules.tag_ends_episode, "a tag ends it")
	check_equal(rules.weights.win_bonus, 10.0, "win bonus")


func test_numbers_are_derived_as_documented() -> void:
	var rules: TagRules = TagRules.read()
	check_equal(rules.tick_sec, 1.0 / 60.0, "tick_sec")
	check_equal(rules.fall_per_tick, 9.8 * (1.0 / 60.0), "fall_per_tick")
	check_equal(rules.half_fall_per_tick, 9.8 * (1.0 / 60.0) * 0.5, "half_fall_per_tick")
	check_equal(rules.speed_change_per_tick, 20.0 * (1.0 / 60.0), "speed_change_per_tick")
	check_equal(rules.half, 0.5, "half")
	check_equal([rules.wall_x, rules.wall_z], [10.0, 10.0], "walls")
	check_equal(rules.stop_x, 10.0 - 0.5 - 0.001, "stop_x")
	check_equal(rules.stop_z, 10.0 - 0.5 - 0.001, "stop_z")
	check_equal(rules.stop_floor, 0.5 + 0.001, "stop_floor")
	check_equal(rules.reach_square, 0.09375 * 0.09375, "reach")
	check_equal(rules.separation_square, 64.0, "separation")
	check_near(rules.turn_cos, cos(deg_to_rad(12.0)), 1e-13, "turn_cos")
	check_near(rules.turn_sin, sin(deg_to_rad(12.0)), 1e-13, "turn_sin")
	check_near(rules.cone_cos, 0.5, 1e-13, "cone_cos")
	check_equal(
		rules.observation_size,
		TagObservation.rays + TagObservation.RAY_CHANNELS * rules.rays,
		"observation_size"
	)


func test_the_fan_is_even_from_edge_to_edge() -> void:
	var rules: TagRules = TagRules.read()
	check_equal([rules.fan_cos.size(), rules.fan_sin.size()], [36, 36], "rays")
	for ray: int in 36:
		var angle: float = deg_to_rad(-60.0 + 120.0 * ray / 35.0)
		check_near(rules.fan_cos[ray], cos(angle), 1e-13, "cosine of ray %d" % ray)
		check_near(rules.fan_sin[ray], sin(angle), 1e-13, "sine of ray %d" % ray)


func test_the_series_are_sine_and_cosine() -> void:
	for degrees: int in range(-180, 181):
		var angle: float = TagSeries.radians(degrees)
		check_near(TagSeries.sine(angle), sin(angle), 1e-11, "sine of %d degrees" % degrees)
		check_near(TagSeries.cosine(angle), cos(angle), 1e-11, "cosine of %d degrees" % degrees)


func test_rule_sets_and_reward_profiles_by_name() -> void:
	var rules: TagRules = TagRules.read("transfer", "classic")
	check_equal(rules.error, "", "error")
	check(not rules.tag_ends_episode, "a tag hands over")
	check_equal(rules.immunity_ticks, 90, "immunity")
	check_equal(rules.weights.timeout_hider_bonus, 6.0, "a number of the profile")
	check_equal(TagRules.read("seek").immunity_ticks, 0, "immunity under seek")
	rules = TagRules.read("hide")
	check_equal([rules.head_start_ticks, rules.limit_ticks], [120, 720], "the head start")
	check_equal(rules.reward_profile, "hide", "the rewards that come with it")
	check_equal(TagRules.read("hide", "classic").reward_profile, "classic", "others by name")


func test_unknown_names_are_answered_with_the_known_ones() -> void:
	check_says(TagRules.read("hopscotch").error, ["'hopscotch'", "seek, transfer, hide"])
	check_says(TagRules.read("", "rich").error, ["'rich'", "default, classic"])
	allow_error("Parse JSON failed")
	check_says(TagRules.read("", "", "res://tag/none.json").error, ["res://tag/none.json"])
	var rules: TagRules = TagRules.read()
	check_says(TagLayout.read("maze", rules).error, ["'maze'", "res://tag/layouts/maze.json"])
	check_equal(TagLayout.read("maze", rules).count, 0, "boxes of a layout that is not there")


func test_every_layout_loads() -> void:
	var rules: TagRules = TagRules.read()
	var files: PackedStringArray = []
	for file: String in DirAccess.get_files_at(TagLayout.FOLDER):
		if file.ends_with(".json"):
			files.append(file.get_basename())
	files.sort()
	var names: Array = LAYOUTS.keys()
	names.sort()
	check_equal(files, PackedStringArray(names), "layouts in the folder")
	for name: String in LAYOUTS:
		var layout: TagLayout = TagLayout.read(name, rules)
		check_equal(layout.error, "", "error of " + name)
		check_equal([layout.name, layout.count], [name, LAYOUTS[name]], "name and boxes")
		check_equal(layout.numbers.size(), layout.count * TagLayout.STRIDE, "numbers of " + name)


func test_a_box_is_derived_as_documented() -> void:
	var layout: TagLayout = TagLayout.read("playground", TagRules.read())
	var box: PackedFloat64Array = layout.numbers.slice(0, TagLayout.STRIDE)
	var rows: Array[PackedFloat64Array] = [
		[-6.0, 0.0, -6.0],
		[-3.0, 1.1, -3.0],
		[-6.0 - 0.5, 0.0 - 0.5, -6.0 - 0.5],
		[-3.0 + 0.5, 1.1 + 0.5, -3.0 + 0.5],
		[-6.0 - 0.5 - 0.001, 0.0 - 0.5 - 0.001, -6.0 - 0.5 - 0.001],
		[-3.0 + 0.5 + 0.001, 1.1 + 0.5 + 0.001, -3.0 + 0.5 + 0.001],
		[-4.5, (0.0 + 1.1) * 0.5, -4.5],
	]
	var parts: Array = TagLayout.Part.keys()
	for row: int in rows.size():
		check_equal(box.slice(3 * row, 3 * row + 3), rows[row], parts[row])
	check(layout.centre(0).is_equal_approx(Vector3(-4.5, 0.55, -4.5)), "centre")
	check(layout.extent(0).is_equal_approx(Vector3(3.0, 1.1, 3.0)), "extent")


func test_a_layout_of_ones_own_loads_by_its_file() -> void:
	var path: String = "user://one_box.json"
	var file: FileAccess = FileAccess.open(path, FileAccess.WRITE)
	file.store_string('{"boxes": [{"at_m": [1.0, 2.0], "size_m": [2.0, 1.5, 4.0]}]}')
	file.close()
	var layout: TagLayout = TagLayout.read(path, TagRules.read())
	check_equal([layout.error, layout.name, layout.count], ["", "one_box", 1], "the layout")
	check_equal(layout.numbers.slice(0, 6), PackedFloat64Array([0, 0, 0, 2, 1.5, 4]), "its box")
	DirAccess.remove_absolute(path)


func test_options_come_from_words_before_settings() -> void:
	var settings: Dictionary[String, String] = {"seed": "7", "arenas": "3"}
	var options: TagOptions = TagOptions.of(["--arenas=12", "--rules=transfer"], settings)
	check_equal(options.error, "", "error")
	check_equal([options.number("arenas"), options.number("seed")], [12, 7], "numbers")
	check_equal([options.text("rules"), options.text("hider")], ["transfer", "bot:evader"], "texts")


func test_wrong_options_are_answered_with_what_is_expected() -> void:
	var nothing: Dictionary[String, String] = {}
	for wrong: String in [
		"--velocity=3",
		"arenas=3",
		"--arenas",
		"--arenas=0",
		"--arenas=many",
		"--seed=-1",
		"--seed=4294967296",
		"--first-seeker=2",
		"--play=both",
		"--seeker=bot:clever",
		"--channel=0",
	]:
		var options: TagOptions = TagOptions.of([wrong], nothing)
		check(options.error != "", "%s was taken" % wrong)
		var value: String = wrong.get_slice("=", 1)
		check(options.error.contains(value), "%s: '%s' does not show it" % [wrong, options.error])
	check_says(TagOptions.of(["--velocity=3"], nothing).error, ["--velocity=3", "--arenas="])
	check_says(TagOptions.of(["--seeker=bot:clever"], nothing).error, ["bot:chaser"])


## The text contains all these parts.
func check_says(text: String, parts: Array[String]) -> void:
	for part: String in parts:
		check(text.contains(part), "'%s' does not say %s" % [text, part])


func test_a_damaged_file_is_told_by_its_place() -> void:
	var rules: TagRules = TagRules.read()
	var folder: String = OS.get_temp_dir().path_join("estragon_test_%d" % OS.get_process_id())
	DirAccess.make_dir_recursive_absolute(folder)
	var path: String = folder.path_join("broken.json")
	var cases: Dictionary[String, String] = {
		"{ oops": "not valid JSON",
		"[]": "no list of boxes",
		'{"boxes": [{"at_m": [0.0], "size_m": [1, 1, 1]}]}': "boxes[0]: at_m",
		'{"boxes": [{"at_m": [0, 0], "size_m": [1, "x", 1]}]}': "boxes[0]: size_m",
		'{"boxes": [7]}': "boxes[0]: at_m",
	}
	for text: String in cases:
		_write(path, text)
		var layout: TagLayout = TagLayout.read(path, rules)
		check(layout.error.contains(cases[text]), "%s gave '%s'" % [text, layout.error])
	_write(path, '{"arena": {"width_m": 20.0}}')
	var problem: String = TagRules.read("", "", path).error
	check_equal(problem, path + ": arena.depth_m is missing", "a missing key")
	_write(path, "nonsense")
	check(TagRules.read("", "", path).error.contains("not valid JSON"), "nonsense was read")
	DirAccess.remove_absolute(path)
	DirAccess.remove_absolute(folder)


func test_the_first_wrong_option_is_the_one_told() -> void:
	var options: TagOptions = TagOptions.of(["--arenas=x", "--seed=y"], {})
	check(options.error.begins_with("--arenas"), options.error)


func test_a_new_episode_begins_without_rewards() -> void:
	var rules: TagRules = TagRules.read()
	var game: TagMatch = TagMatch.new(rules, [TagLayout.read("empty", rules)])
	game.begin(0)
	game.decide(PackedFloat32Array([1.0, 0.0, 0.0]), PackedFloat32Array([0.0, 1.0, 0.0]))
	check(game.rewards[0] != 0.0, "nothing was paid")
	game.begin(1)
	check_equal(game.rewards[0], 0.0, "the reward")
	check_equal(game.terms[1][0], 0.0, "a term")


func _write(path: String, text: String) -> void:
	var file: FileAccess = FileAccess.open(path, FileAccess.WRITE)
	file.store_string(text)
	file.close()
