class_name TagTrajectoryStart
extends RefCounted
## The first record of a logged match: players, rules and layout.

const FORMAT: int = 1
## Where a number of the record belongs in rules.json, and its maximum.
const PLACES: Dictionary[String, Array] = {
	"agent_size_m": ["agent", "size_m", 100.0],
	"ticks_per_second": ["physics", "ticks_per_second", 1000.0],
	"decision_ticks": ["episode", "step_tick_interval", 1000.0],
	"time_limit_sec": ["episode", "time_limit_sec", 86400.0],
}
const EYE_PLACES: Dictionary[String, Array] = {
	"rays": ["eyes", "rays", 1024.0],
	"fan_deg": ["eyes", "cone_deg", 360.0],
	"range_m": ["eyes", "range_m", 1000.0],
	"height_m": ["eyes", "height_m", 100.0],
}
const LARGEST_ARENA_M: float = 1000.0

## What is wrong with the record, or "".
var error: String = ""
var rules: TagRules
var layout: TagLayout
## The agents' names; empty if the record has none.
var agents: PackedStringArray = []
var players: Dictionary[String, String] = {"seeker": "", "hider": ""}
## The name of the agent that starts as the seeker, if the record has it.
var seeker: String = ""
var episode: int = 0
var arena: int = 0
var seed_value: int = 0


## Read the record; what it lacks is taken from rules.json.
static func of(record: Dictionary) -> TagTrajectoryStart:
	var start: TagTrajectoryStart = TagTrajectoryStart.new()
	start.error = start._take(record)
	return start


func _take(record: Dictionary) -> String:
	if record.get("format", FORMAT) != FORMAT:
		return "format %s; this reads format %d" % [record.format, FORMAT]
	if record.get("agents") != null:
		var named: Variant = record.agents
		if not named is Array or named.size() != 2 or str(named[0]) == str(named[1]):
			return "agents: expected two names"
		agents = PackedStringArray([str(named[0]), str(named[1])])
	seeker = str(record.get("seeker"))
	episode = _whole(record.get("episode"))
	arena = _whole(record.get("arena"))
	seed_value = _whole(record.get("seed"))
	if record.get("players") is Dictionary:
		for role: String in players:
			players[role] = str(record.players.get(role, ""))
	var problem: String = _take_rules(record)
	return problem if problem else _take_layout(record)


func _take_rules(record: Dictionary) -> String:
	var data: Variant = JSON.parse_string(FileAccess.get_file_as_string(TagRules.PATH))
	var eyes: Variant = record.get("eyes")
	eyes = {} if eyes == null else eyes
	var size: Variant = record.get("arena_size_m", [data.arena.width_m, data.arena.depth_m])
	var problem: String = _move_numbers(record, PLACES, data)
	if not eyes is Dictionary:
		problem = "eyes: expected an object"
	if not problem:
		problem = _move_numbers(eyes, EYE_PLACES, data)
	if not TagLayout.is_numbers(size, 2) or size.min() <= 0 or size.max() > LARGEST_ARENA_M:
		problem = "arena_size_m: expected two lengths, up to %d m" % int(LARGEST_ARENA_M)
	if problem:
		return problem
	data.arena.width_m = size[0]
	data.arena.depth_m = size[1]
	data.observation.size = TagObservation.rays + TagObservation.RAY_CHANNELS * int(data.eyes.rays)
	var rule_set: String = str(record.get("rules", ""))
	rules = TagRules.of(data, TagRules.PATH, rule_set if data.rule_sets.has(rule_set) else "")
	return rules.error


## Copy numbers of a record to their places in the rules.
func _move_numbers(record: Dictionary, places: Dictionary[String, Array], data: Variant) -> String:
	for key: String in places:
		if not record.has(key):
			continue
		var most: float = places[key][2]
		if not TagLayout.is_numbers([record[key]], 1) or record[key] <= 0 or record[key] > most:
			return "%s: expected a number above 0, up to %d" % [key, int(most)]
		data[places[key][0]][places[key][1]] = record[key]
	return ""


func _take_layout(record: Dictionary) -> String:
	if not record.has("layout"):
		layout = TagLayout.read(rules.default_layout, rules)
		return layout.error
	layout = TagLayout.of(record.layout, "layout", rules)
	if not layout.error:
		layout.name = str(record.layout.get("name", ""))
	return layout.error


func _whole(value: Variant) -> int:
	return int(value) if TagLayout.is_numbers([value], 1) else 0
