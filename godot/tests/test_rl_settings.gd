extends TagTest
## What an RLEnv is set to reaches the rules: rules.json is the base, changes replace single values.

var _env: RLEnv = RLEnv.new()
var _rules: TagRules = TagRules.read()


func _exit_tree() -> void:
	_env.free()


func test_the_exports_are_the_documented_ones() -> void:
	var documented: Dictionary[String, Variant] = {
		"control_all_agents": true,
		"training_mode": false,
		"ai_is_it": true,
		"step_tick_interval": 3,
		"time_limit_sec": 10.0,
		"distance_reward_scale": 0.14,
		"seeker_time_penalty": -0.005,
		"runner_survival_bonus": 0.01,
		"win_bonus": 10.0,
		"timeout_hider_bonus": 6.0,
		"timeout_seeker_penalty": 6.0,
		"high_ground_bonus": 0.1,
		"jump_near_bonus": 0.5,
		"log_trajectories": false,
		"legacy_act_fallback": false,
	}
	var exported: Dictionary[String, bool] = {}
	for property: Dictionary in _env.get_property_list():
		exported[property.name] = property.usage & PROPERTY_USAGE_EDITOR != 0
	for name: String in documented:
		check_equal(_env.get(name), documented[name], name)
		check(exported[name], name + " is exported")


func test_what_is_not_changed_is_as_in_the_rules() -> void:
	check_equal(_prepare({}), "", "complaint")
	var fresh: TagRules = TagRules.read()
	check_equal(_rules.weights, fresh.weights, "weights")
	check_equal([_rules.limit_ticks, _rules.decision_ticks], [600, 3], "ticks")


func test_a_changed_export_replaces_one_value() -> void:
	_env.seeker_time_penalty = -0.02
	_env.step_tick_interval = 4
	check_equal(_prepare({}), "", "complaint")
	var expected: Dictionary[String, float] = TagRules.read().weights
	expected.seeker_time_penalty = -0.02
	check_equal(_rules.weights, expected, "weights")
	check_equal([_rules.limit_ticks, _rules.decision_ticks], [600, 4], "ticks")


func test_a_variable_counts_even_where_it_is_the_default() -> void:
	check_equal(_prepare({"timeout_hider_bonus": "6", "time_limit_sec": "2.5"}), "", "complaint")
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
	check_equal(_prepare({}), "", "complaint")
	check_equal(_rules.weights.win_bonus, 20.0, "win_bonus")
	check_equal(_rules.weights.distance_reward_scale, 0.5, "distance_reward_scale")


func test_switches() -> void:
	var settings: Dictionary[String, String] = {
		"training_mode": "1", "ai_is_it": "false", "control_all_agents": "No"
	}
	check_equal(_prepare(settings), "", "complaint")
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
		var complaint: String = env.prepare(_options(), TagRules.read())
		check(complaint.begins_with(RLSettings.variable(name) + ": expected "), complaint)
		check(not complaint.contains("\n"), "one line")
		env.free()


func test_an_episode_shorter_than_a_decision_is_refused() -> void:
	var complaint: String = _prepare({"time_limit_sec": "0.02"})
	check_equal(complaint, "AI_TIME_LIMIT_SEC: shorter than one decision", "complaint")


func _prepare(settings: Dictionary[String, String]) -> String:
	_env.variables = settings
	return _env.prepare(_options(), _rules)


func _options() -> TagOptions:
	return TagOptions.of([], {} as Dictionary[String, String])
