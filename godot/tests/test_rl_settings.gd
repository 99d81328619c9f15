extends TagTest
## What an RLEnv is set to reaches the rules: rules.json is the base, edits replace single values.
##
## The Inspector shows what is in force, and a scene keeps every edit.

const SCENE: PackedScene = preload("res://scenes/Main.tscn")

var _env: RLEnv = RLEnv.new()
var _rules: TagRules = TagRules.read()


func _exit_tree() -> void:
	_env.free()


func test_the_exports_are_the_documented_ones() -> void:
	_env.rewards = "classic"
	var documented: Dictionary[String, Variant] = {
		"control_all_agents": true,
		"training_mode": false,
		"ai_is_it": true,
		"step_tick_interval": 3,
		"time_limit_sec": 10.0,
		"distance_reward_scale": 0.14,
		"progress_reward_scale": 0.14,
		"seeker_time_penalty": -0.005,
		"runner_survival_bonus": 0.01,
		"win_bonus": 10.0,
		"tag_bonus": 10.0,
		"timeout_hider_bonus": 6.0,
		"timeout_seeker_penalty": 6.0,
		"high_ground_bonus": 0.1,
		"jump_near_bonus": 0.5,
		"log_trajectories": false,
		"legacy_act_fallback": false,
	}
	for name: String in documented:
		check_equal(_env.get(name), documented[name], name)
		check(_property(name).usage & PROPERTY_USAGE_EDITOR != 0, name + " is exported")


func test_the_inspector_shows_the_profile_in_force() -> void:
	check_equal(_env.rewards, "default", "profile")
	check_equal(_property("rewards").hint, PROPERTY_HINT_ENUM, "a list to choose from")
	check_equal(_property("rewards").hint_string, "default,classic,hide", "profiles")
	for profile: String in ["default", "classic"]:
		_env.rewards = profile
		var weights: Dictionary[String, float] = TagRules.read("", profile).weights
		for name: String in weights:
			if name in _env:
				check_equal(_env.get(name), weights[name], "%s of %s" % [name, profile])
	check_equal(_prepare({}), "", "problem")
	check_equal(_rules.weights, TagRules.read("", "classic").weights, "weights")
	check_equal(_rules.reward_profile, "classic", "profile")


func test_an_edit_to_any_value_takes_effect() -> void:
	for value: float in [10.0, 6.0, 0.0]:
		var env: RLEnv = RLEnv.new()
		env.timeout_hider_bonus = 7.0
		env.timeout_hider_bonus = value
		env.rewards = "classic"
		check_equal(env.timeout_hider_bonus, value, "shown")
		var rules: TagRules = TagRules.read()
		check_equal(env.prepare(_options(), rules), "", "problem")
		check_equal(rules.weights.timeout_hider_bonus, value, "in force")
		check_equal(rules.weights.timeout_seeker_penalty, 6.0, "the profile's")
		env.free()


func test_the_revert_arrow_takes_the_profiles_value() -> void:
	for name: String in ["win_bonus", "tag_bonus", "step_tick_interval", "rewards"]:
		var before: Variant = _env.get(name)
		check_equal(_env.property_get_revert(name), before, name + " is not edited")
		_env.set(name, "classic" if before is String else 5)
		check(_env.get(name) != before, name + " is edited")
		_env.set(name, _env.property_get_revert(name))
		check_equal(_env.get(name), before, name + " is reverted")


func test_a_scene_keeps_every_edit_and_nothing_else() -> void:
	for edits: Dictionary in [
		{},
		{"timeout_hider_bonus": 6.0, "timeout_seeker_penalty": 10.0, "step_tick_interval": 3},
		{"rewards": "classic", "timeout_hider_bonus": 10.0, "win_bonus": 0.0},
		{"rewards": "default", "time_limit_sec": 10.0},
	]:
		var scene: Node = SCENE.instantiate()
		scene.get_node("Preview").free()  # only the editor can pack it
		for name: String in edits:
			scene.get_node("RLEnv").set(name, edits[name])
		var packed: PackedScene = PackedScene.new()
		check_equal(packed.pack(scene), OK, "packed")
		scene.free()
		var state: SceneState = packed.get_state()
		var kept: Dictionary = {}
		for node: int in state.get_node_count():
			if state.get_node_name(node) == "RLEnv":
				for index: int in state.get_node_property_count(node):
					var name: String = state.get_node_property_name(node, index)
					kept[name] = state.get_node_property_value(node, index)
		kept.erase("script")
		kept.erase("client")
		check_equal(kept, edits, "kept")
		var again: Node = packed.instantiate()
		for name: String in edits:
			check_equal(again.get_node("RLEnv").get(name), edits[name], name)
		again.free()


func test_the_environment_wins_over_the_inspector() -> void:
	_env.rewards = "classic"
	_env.win_bonus = 20.0
	_env.jump_near_bonus = 2.0
	check_equal(_prepare({"win_bonus": "30"}), "", "problem")
	check_equal(_rules.weights.win_bonus, 30.0, "of the environment")
	check_equal(_rules.weights.jump_near_bonus, 2.0, "of the Inspector")
	check_equal(_rules.weights.high_ground_bonus, 0.1, "of the profile")
	check_equal([_env.win_bonus, _env.tag_bonus], [30.0, 30.0], "shown")


func test_the_command_line_chooses_the_profile_before_the_inspector() -> void:
	_env.rewards = "classic"
	_env.win_bonus = 20.0
	var options: TagOptions = TagOptions.of(["--rewards=default"], {} as Dictionary[String, String])
	check_equal(_env.prepare(options, _rules), "", "problem")
	check_equal([_rules.reward_profile, _env.rewards], ["default", "default"], "profile")
	check_equal(_rules.weights.timeout_hider_bonus, 10.0, "of the profile")
	check_equal(_rules.weights.win_bonus, 20.0, "of the Inspector")


func test_an_edit_in_a_running_game_counts_at_once() -> void:
	check_equal(_prepare({}), "", "problem")
	_env.tag_bonus = 25.0
	_env.time_limit_sec = 4.0
	check_equal([_rules.weights.win_bonus, _rules.limit_ticks], [25.0, 240], "in force")
	_env.tag_bonus = NAN
	check_equal(_rules.weights.win_bonus, 10.0, "the profile's again")


func test_an_unknown_profile_is_refused() -> void:
	_env.rewards = "generous"
	var known: String = "default, classic, hide"
	var problem: String = "RLEnv.rewards: no reward profile 'generous'; there are " + known
	check_equal(_prepare({}), problem, "problem")


func test_what_is_not_changed_is_as_in_the_rules() -> void:
	check_equal(_prepare({}), "", "problem")
	var fresh: TagRules = TagRules.read()
	check_equal(_rules.weights, fresh.weights, "weights")
	check_equal([_rules.limit_ticks, _rules.decision_ticks], [600, 3], "ticks")


func test_a_changed_export_replaces_one_value() -> void:
	_env.seeker_time_penalty = -0.02
	_env.step_tick_interval = 4
	check_equal(_prepare({}), "", "problem")
	var expected: Dictionary[String, float] = TagRules.read().weights
	expected.seeker_time_penalty = -0.02
	check_equal(_rules.weights, expected, "weights")
	check_equal([_rules.limit_ticks, _rules.decision_ticks], [600, 4], "ticks")


func test_a_variable_counts_even_where_it_is_the_default() -> void:
	check_equal(_prepare({"timeout_hider_bonus": "6", "time_limit_sec": "2.5"}), "", "problem")
	check_equal(_rules.weights.timeout_hider_bonus, 6.0, "the hider's bonus")
	check_equal(_rules.weights.timeout_seeker_penalty, 10.0, "the seeker's penalty")
	check_equal([_rules.time_limit_sec, _rules.limit_ticks], [2.5, 150], "the time")


func test_variables_are_named_after_the_exports() -> void:
	check_equal(RLSettings.variable("ai_is_it"), "AI_IS_IT", "ai_is_it")
	check_equal(RLSettings.variable("win_bonus"), "AI_WIN_BONUS", "win_bonus")
	check_equal(RLSettings.variable("train_duration"), "AI_TRAIN_DURATION", "train_duration")
	OS.set_environment("AI_WIN_BONUS", "12.5")
	OS.set_environment("AI_IS_IT", "")
	check_equal(RLSettings.of_process(), {"win_bonus": "12.5"} as Dictionary[String, String], "set")
	OS.unset_environment("AI_WIN_BONUS")
	OS.unset_environment("AI_IS_IT")


func test_other_names_are_accepted() -> void:
	_env.set("tag_bonus", 20.0)
	_env.set("progress_reward_scale", 0.5)
	check_equal([_env.win_bonus, _env.get("tag_bonus")], [20.0, 20.0], "win_bonus")
	check_equal(_prepare({}), "", "problem")
	check_equal(_rules.weights.win_bonus, 20.0, "win_bonus")
	check_equal(_rules.weights.distance_reward_scale, 0.5, "distance_reward_scale")


func test_switches() -> void:
	var settings: Dictionary[String, String] = {
		"training_mode": "1", "ai_is_it": "false", "control_all_agents": "No"
	}
	check_equal(_prepare(settings), "", "problem")
	check(_env.training_mode and _env.is_wanted(), "training")
	check_equal([_env.ai_is_it, _env.control_all_agents], [false, false], "others")


func test_wrong_values_are_told_by_name() -> void:
	var cases: Dictionary[String, String] = {
		"win_bonus": "much",
		"step_tick_interval": "2.5",
		"time_limit_sec": "-1",
		"seeker_time_penalty": "0.005",
		"distance_reward_scale": "nan",
		"training_mode": "perhaps",
		"train_duration": "1e12",
	}
	for name: String in cases:
		var env: RLEnv = RLEnv.new()
		env.variables = {name: cases[name]} as Dictionary[String, String]
		var problem: String = env.prepare(_options(), TagRules.read())
		check(problem.begins_with(RLSettings.variable(name) + ": expected "), problem)
		check(not problem.contains("\n"), "one line")
		env.free()


func test_an_episode_shorter_than_a_decision_is_refused() -> void:
	var problem: String = _prepare({"time_limit_sec": "0.02"})
	check_equal(problem, "AI_TIME_LIMIT_SEC: shorter than one decision", "problem")


func _prepare(settings: Dictionary[String, String]) -> String:
	_env.variables = settings
	return _env.prepare(_options(), _rules)


func _property(name: String) -> Dictionary:
	for property: Dictionary in _env.get_property_list():
		if property.name == name:
			return property
	return {"usage": 0}


func _options() -> TagOptions:
	return TagOptions.of([], {} as Dictionary[String, String])
