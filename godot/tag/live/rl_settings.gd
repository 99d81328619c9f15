@tool
class_name RLSettings
extends RefCounted
## The numbers of an RLEnv: AI_* variables over Inspector edits over the rules.
##
## `number` is always the value in force. Before the game starts the rules are those of rules.json,
## so the Inspector shows what the game will use.

const SWITCHES: Array[String] = [
	"control_all_agents",
	"training_mode",
	"ai_is_it",
	"log_trajectories",
	"legacy_act_fallback",
]
const WHOLE: Array[String] = ["step_tick_interval"]
const UNSET_INT: int = -1

## The least and the most that each number may be; those of the reward weights are in rules.json.
static var numbers: Dictionary[String, Array] = _all_numbers()

## The reward profile that was chosen, or "" for the one that the rules name.
var rewards: String = ""

## Edited numbers by name; all others are as in the rules.
var _edits: Dictionary[String, Variant] = {}
## Which of them were set by an environment variable.
var _from_variables: Dictionary[String, bool] = {}
## The values of what was not edited.
var _rules: TagRules
## Whether the rules are those of a game that has started.
var _is_running: bool = false


## The variables of this process, by the name of the export that each sets.
static func of_process() -> Dictionary[String, String]:
	var found: Dictionary[String, String] = {}
	for name: String in SWITCHES + numbers.keys():
		if OS.get_environment(variable(name)):
			found[name] = OS.get_environment(variable(name))
	return found


static func _all_numbers() -> Dictionary[String, Array]:
	var found: Dictionary[String, Array] = {
		"step_tick_interval": [1.0, 60.0],
		"time_limit_sec": [0.0, 86400.0],
		"train_duration": [0.0, 1000000000.0],
	}
	var weights: Dictionary[String, Array] = TagRules.reward_weights()
	for weight: String in weights:
		found[weight] = weights[weight].slice(1)
	return found


static func variable(name: String) -> String:
	return "AI_" + name.trim_prefix("ai_").to_upper()


## The value in force.
func number(name: String) -> Variant:
	if _edits.has(name):
		return _edits[name]
	var rules: TagRules = _base()
	match name:
		"step_tick_interval":
			return rules.decision_ticks
		"time_limit_sec":
			return rules.time_limit_sec
		"train_duration":
			return 0.0
	var profile: String = rewards if rewards in rules.reward_profiles else rules.reward_profile
	return float(rules.reward_profiles.get(profile, {}).get(name, NAN))


## Override a value of the rules, even with an equal one; `unset` restores the rules' own.
##
## In a running game all but `step_tick_interval` apply immediately.
func edit(name: String, value: Variant) -> void:
	if is_unset(name, value):
		_edits.erase(name)
	else:
		_edits[name] = value
	if _is_running and name != "step_tick_interval":
		var problem: String = _put(name, number(name), _rules)
		if problem:
			push_warning(problem)


func is_edited(name: String) -> bool:
	return _edits.has(name)


## The value that means "as in the rules".
static func unset(name: String) -> Variant:
	return UNSET_INT if name in WHOLE else NAN


static func is_unset(name: String, value: Variant) -> bool:
	return value == UNSET_INT if name in WHOLE else is_nan(value)


## The profile in force.
func reward_profile() -> String:
	return rewards if rewards else _base().reward_profile


func reward_profiles() -> Array:
	return _base().reward_profiles.keys()


## Apply the variables; returns the problem, or "".
func take(env: RLEnv, values: Dictionary[String, String]) -> String:
	for name: String in values:
		var text: String = values[name]
		if name in SWITCHES:
			if not text.to_lower() in TagOptions.ON + TagOptions.OFF:
				return "%s: expected 1 or 0, got '%s'" % [variable(name), text]
			env.set(name, text.to_lower() in TagOptions.ON)
			continue
		var is_whole: bool = name in WHOLE
		if not (text.is_valid_int() if is_whole else text.is_valid_float()):
			var kind: String = "a whole number" if is_whole else "a number"
			return "%s: expected %s, got '%s'" % [variable(name), kind, text]
		_from_variables[name] = true
		_edits[name] = text.to_int() if is_whole else text.to_float()
	return ""


## Apply profile and numbers to the rules; a profile on the command line wins.
func adjust(rules: TagRules, asked_rewards: String) -> String:
	if rewards and not asked_rewards:
		var problem: String = rules.choose_rewards(rewards)
		if problem:
			return "RLEnv.rewards: " + problem
	for name: String in _edits:
		var problem: String = _put(name, _edits[name], rules)
		if problem:
			return problem
	if rules.limit_ticks - rules.head_start_ticks < rules.decision_ticks:
		return "%s: shorter than one decision" % _label("time_limit_sec")
	_rules = rules
	rewards = rules.reward_profile
	_is_running = true
	return ""


func _put(name: String, value: float, rules: TagRules) -> String:
	var least: float = numbers[name][0]
	var most: float = numbers[name][1]
	if not (value >= least and value <= most):
		return "%s: expected %s to %s, got %s" % [_label(name), least, most, value]
	match name:
		"step_tick_interval":
			rules.decision_ticks = int(value)
		"time_limit_sec":
			rules.limit_time(value)
		"train_duration":
			pass
		_:
			rules.weights[name] = value
	return ""


func _base() -> TagRules:
	if not _rules:
		_rules = TagRules.read()
	return _rules


func _label(name: String) -> String:
	return variable(name) if _from_variables.has(name) else "RLEnv." + name
