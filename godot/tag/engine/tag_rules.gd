@tool
class_name TagRules
extends RefCounted
## Every number of the game, read from rules.json, and what docs/physics.md derives from them.

const PATH: String = "res://tag/rules.json"

const NEEDED: Dictionary[String, Array] = {
	"arena": ["width_m", "depth_m", "wall_height_m"],
	"physics": ["ticks_per_second", "gravity_mps2", "skin_m"],
	"agent":
	[
		"size_m",
		"speed_mps",
		"acceleration_mps2",
		"jump_speed_mps",
		"jump_threshold",
		"turn_rate_deg_per_sec",
		"facing_dead_zone",
	],
	"eyes": ["rays", "cone_deg", "range_m", "height_m"],
	"observation": ["version", "size", "position_scale_m", "velocity_scale_mps"],
	"episode": ["time_limit_sec", "step_tick_interval", "tag_reach_m", "spawn_separation_m"],
	"rules": [],
	"rule_sets": [],
	"layout": [],
	"rewards": [],
	"reward_profiles": [],
}

## The game's own file: the declaration of the observation and of the reward terms.
static var _game: Dictionary = JSON.parse_string(FileAccess.get_file_as_string(PATH))

## What is wrong with the file, or "".
var error: String = ""
var rule_set: String
var reward_profile: String
var default_layout: String

var ticks_per_second: int
var tick_sec: float
var fall_per_tick: float
var half_fall_per_tick: float
var skin: float
var size: float
var half: float
var speed: float
var acceleration: float
var speed_change_per_tick: float
var jump_speed: float
var jump_threshold: float
var turn_cos: float
var turn_sin: float
var facing_dead_zone: float
var wall_x: float
var wall_z: float
var wall_height: float
var stop_x: float
var stop_z: float
var stop_floor: float
var rays: int
var eye_height: float
var eye_range: float
var cone_deg: float
var cone_cos: float
var fan_cos: PackedFloat64Array
var fan_sin: PackedFloat64Array
var observation_version: int
var observation_size: int
var position_scale: float
var velocity_scale: float
var time_limit_sec: float
## The head start and the time limit together.
var limit_sec: float
var limit_ticks: int
var decision_ticks: int
var reach_square: float
var separation_square: float
var immunity_ticks: int
## Ticks in which the seeker's eyes are closed: it neither moves nor sees.
var head_start_sec: float
var head_start_ticks: int
## How far away the hider hears where the seeker is, squared.
var hearing_square: float
var tag_ends_episode: bool
## The reward profile in force, by the names of rules.json.
var weights: Dictionary[String, float] = {}
## All reward profiles of the file, complete: name to weights.
var reward_profiles: Dictionary = {}


## Read the rules, with another rule set or reward profile if one is named.
static func read(
	chosen_rules: String = "", chosen_rewards: String = "", path: String = PATH
) -> TagRules:
	var json: JSON = JSON.new()
	if not FileAccess.file_exists(path):
		return _failed("there is no %s" % path)
	if json.parse(FileAccess.get_file_as_string(path)) != OK:
		return _failed("%s is not valid JSON: %s" % [path, json.get_error_message()])
	return of(json.data, path, chosen_rules, chosen_rewards)


## Rules from what a file like rules.json holds; `path` is for the message if something is wrong.
static func of(
	data: Variant, path: String, chosen_rules: String = "", chosen_rewards: String = ""
) -> TagRules:
	var missing: String = _missing(data)
	if missing:
		return _failed("%s: %s is missing" % [path, missing])
	var rules: TagRules = TagRules.new()
	rules._take(data, chosen_rules, chosen_rewards)
	return rules


## Where a field of an observation begins.
static func field(name: String) -> int:
	var start: int = 0
	for entry: Array in _game.observation.layout:
		if entry[0] == name:
			return start
		start += int(entry[1])
	push_error("rules.json: observation.layout has no field '%s'" % name)
	return -1


## The reward terms, in the order in which they are summed: name to place.
static func reward_terms() -> Dictionary[String, int]:
	var terms: Dictionary[String, int] = {}
	for term: String in _game.reward_terms:
		terms[term] = terms.size()
	return terms


## The weights of the reward terms: name to usual value, least and most.
static func reward_weights() -> Dictionary[String, Array]:
	var table: Dictionary[String, Array] = {}
	for term: String in _game.reward_terms:
		table.merge(_game.reward_terms[term])
	return table


## Take all weights from a reward profile; an error message, or "".
func choose_rewards(profile: String) -> String:
	if not reward_profiles.has(profile):
		var names: String = ", ".join(reward_profiles.keys())
		return "no reward profile '%s'; there are %s" % [profile, names]
	reward_profile = profile
	for weight: String in reward_profiles[profile]:
		weights[weight] = reward_profiles[profile][weight]
	return ""


## Take another time limit; the head start comes on top.
func limit_time(seconds: float) -> void:
	time_limit_sec = seconds
	limit_sec = head_start_sec + seconds
	limit_ticks = int(seconds * ticks_per_second + 0.5) + head_start_ticks


static func _failed(complaint: String) -> TagRules:
	var rules: TagRules = TagRules.new()
	rules.error = complaint
	return rules


## The first key that the file lacks, or "". Python checks the values too.
static func _missing(data: Variant) -> String:
	if not data is Dictionary:
		return "everything"
	for group: String in NEEDED:
		if not data.has(group):
			return group
		for key: String in NEEDED[group]:
			if not data[group] is Dictionary or not data[group].has(key):
				return "%s.%s" % [group, key]
	return ""


func _take(data: Dictionary, chosen_rules: String, chosen_rewards: String) -> void:
	rule_set = chosen_rules if chosen_rules else str(data.rules)
	default_layout = data.layout
	if not data.rule_sets.has(rule_set):
		error = "no rule set '%s'; there are %s" % [rule_set, ", ".join(data.rule_sets.keys())]
		return
	var usual: Dictionary[String, Array] = reward_weights()
	for profile: String in data.reward_profiles:
		reward_profiles[profile] = data.reward_profiles[profile].duplicate()
		for weight: String in usual:
			reward_profiles[profile].get_or_add(weight, usual[weight][0])
	var profile: String = chosen_rewards
	if not profile and chosen_rules:
		profile = data.rule_sets[rule_set].get("rewards", "")
	error = choose_rewards(profile if profile else str(data.rewards))
	if error:
		return
	_take_world(data)
	_take_agent(data.agent)
	_take_eyes(data.eyes)
	_take_episode(data)


func _take_world(data: Dictionary) -> void:
	ticks_per_second = int(data.physics.ticks_per_second)
	tick_sec = 1.0 / ticks_per_second
	fall_per_tick = data.physics.gravity_mps2 * tick_sec
	half_fall_per_tick = fall_per_tick * 0.5
	skin = data.physics.skin_m
	size = data.agent.size_m
	half = size * 0.5
	wall_x = data.arena.width_m * 0.5
	wall_z = data.arena.depth_m * 0.5
	wall_height = data.arena.wall_height_m
	stop_x = wall_x - half - skin
	stop_z = wall_z - half - skin
	stop_floor = half + skin


func _take_agent(data: Dictionary) -> void:
	speed = data.speed_mps
	acceleration = data.acceleration_mps2
	speed_change_per_tick = acceleration * tick_sec
	jump_speed = data.jump_speed_mps
	jump_threshold = data.jump_threshold
	facing_dead_zone = data.facing_dead_zone
	var turn: float = TagSeries.radians(data.turn_rate_deg_per_sec) * tick_sec
	turn_cos = TagSeries.cosine(turn)
	turn_sin = TagSeries.sine(turn)


func _take_eyes(data: Dictionary) -> void:
	rays = int(data.rays)
	eye_height = data.height_m
	eye_range = data.range_m
	cone_deg = data.cone_deg
	var cone: float = TagSeries.radians(cone_deg)
	cone_cos = TagSeries.cosine(cone * 0.5)
	fan_cos.resize(rays)
	fan_sin.resize(rays)
	for ray: int in rays:
		var angle: float = cone * (ray / (rays - 1.0) - 0.5) if rays > 1 else 0.0
		fan_cos[ray] = TagSeries.cosine(angle)
		fan_sin[ray] = TagSeries.sine(angle)


func _take_episode(data: Dictionary) -> void:
	observation_version = int(data.observation.version)
	observation_size = int(data.observation.size)
	position_scale = data.observation.position_scale_m
	velocity_scale = data.observation.velocity_scale_mps
	decision_ticks = int(data.episode.step_tick_interval)
	reach_square = data.episode.tag_reach_m * data.episode.tag_reach_m
	separation_square = data.episode.spawn_separation_m * data.episode.spawn_separation_m
	var chosen: Dictionary = data.rule_sets[rule_set]
	immunity_ticks = int(chosen.immunity_sec * ticks_per_second + 0.5)
	tag_ends_episode = chosen.tag_ends_episode
	head_start_sec = chosen.get("head_start_sec", 0.0)
	head_start_ticks = int(head_start_sec * ticks_per_second + 0.5)
	var hearing: float = chosen.get("hearing_m", 0.0)
	hearing_square = hearing * hearing
	limit_time(data.episode.time_limit_sec)
