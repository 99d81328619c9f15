class_name RLSettings
extends RefCounted
## What an RLEnv was set to: AI_* variables become its exports, and those change the rules.
##
## rules.json is the base. An export that was changed, or whose variable is set, replaces one value.

const SWITCHES: Array[String] = [
	"control_all_agents",
	"training_mode",
	"ai_is_it",
	"log_trajectories",
	"legacy_act_fallback",
]
const MOST: float = 1000000.0
## The least and the most that each number may be.
const NUMBERS: Dictionary[String, Array] = {
	"step_tick_interval": [1.0, 60.0],
	"time_limit_sec": [0.0, 86400.0],
	"distance_reward_scale": [0.0, MOST],
	"seeker_time_penalty": [-MOST, 0.0],
	"runner_survival_bonus": [0.0, MOST],
	"win_bonus": [0.0, MOST],
	"timeout_hider_bonus": [0.0, MOST],
	"timeout_seeker_penalty": [0.0, MOST],
	"high_ground_bonus": [0.0, MOST],
	"jump_near_bonus": [0.0, MOST],
	"train_duration": [0.0, 1000.0 * MOST],
}
## Numbers that are no weight of a reward.
const OTHERS: Array[String] = ["step_tick_interval", "time_limit_sec", "train_duration"]

var _env: RLEnv
var _defaults: Dictionary[String, Variant] = {}
## Set by a variable, whatever the value.
var _set: Dictionary[String, bool] = {}


## To be made while the exports still have their defaults.
func _init(env: RLEnv) -> void:
	_env = env
	for name: String in NUMBERS:
		_defaults[name] = env.get(name)


## The variables of this process, by the name of the export that each sets.
static func of_process() -> Dictionary[String, String]:
	var found: Dictionary[String, String] = {}
	for name: String in SWITCHES + NUMBERS.keys():
		if OS.get_environment(variable(name)):
			found[name] = OS.get_environment(variable(name))
	return found


static func variable(name: String) -> String:
	return "AI_" + name.trim_prefix("ai_").to_upper()


## Set exports; what is wrong with a value, or "".
func take(values: Dictionary[String, String]) -> String:
	for name: String in values:
		var text: String = values[name]
		if name in SWITCHES:
			if not text.to_lower() in TagOptions.ON + TagOptions.OFF:
				return "%s: expected 1 or 0, got '%s'" % [variable(name), text]
			_env.set(name, text.to_lower() in TagOptions.ON)
			continue
		var is_whole: bool = typeof(_defaults[name]) == TYPE_INT
		if not (text.is_valid_int() if is_whole else text.is_valid_float()):
			var kind: String = "a whole number" if is_whole else "a number"
			return "%s: expected %s, got '%s'" % [variable(name), kind, text]
		_env.set(name, text.to_int() if is_whole else text.to_float())
		_set[name] = true
	return ""


## Put what was changed into the rules; what is wrong with it, or "".
func adjust(rules: TagRules) -> String:
	for name: String in NUMBERS:
		var value: float = _env.get(name)
		var least: float = NUMBERS[name][0]
		var most: float = NUMBERS[name][1]
		if not (value >= least and value <= most):
			return "%s: expected %s to %s, got %s" % [_label(name), least, most, value]
		if _is_changed(name) and not name in OTHERS:
			rules.weights[name] = value
	if _is_changed("step_tick_interval"):
		rules.decision_ticks = _env.step_tick_interval
	if _is_changed("time_limit_sec"):
		rules.time_limit_sec = _env.time_limit_sec
		rules.limit_ticks = int(rules.time_limit_sec * rules.ticks_per_second + 0.5)
	if rules.limit_ticks < rules.decision_ticks:
		return "%s: shorter than one decision" % _label("time_limit_sec")
	return ""


func _is_changed(name: String) -> bool:
	return _set.has(name) or _env.get(name) != _defaults[name]


func _label(name: String) -> String:
	return variable(name) if _set.has(name) else "RLEnv." + name
