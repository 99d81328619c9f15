class_name TagTrajectoryFile
extends RefCounted
## A logged match, read from its file and checked; docs/trajectory_rendering.md has the format.

## Numbers of an agent at a moment, in `numbers`.
enum Part { X, Y, Z, VELOCITY_X, VELOCITY_Y, VELOCITY_Z, FORWARD_X, FORWARD_Z }
## Flags of an agent at a moment, in `facts`.
enum Fact { IS_IT = 1, ON_FLOOR = 2, IMMUNE = 4, SEES = 8, HAS_RAYS = 16 }

const STRIDE: int = 8
const LARGEST_BYTES: int = 256 * 1024 * 1024
## Below this speed, the direction of motion is not the facing.
const STANDING_MPS: float = 0.001

var path: String
## What is wrong with the file, or "".
var error: String = ""
var start: TagTrajectoryStart
## The agents' names; everywhere else an agent is 0 or 1.
var names: PackedStringArray = []
var first_seeker: int = 0
## The logged ticks, counted from the start of the match.
var ticks: PackedInt64Array = []
## For each tick, STRIDE numbers of the first agent, then of the second.
var numbers: PackedFloat64Array = []
## For each tick, the flags of the first agent, then of the second.
var facts: PackedByteArray = []
## For each tick and agent: length of each ray in m, and what it hits (1 solid, 2 agent).
var reaches: PackedFloat64Array = []
var kinds: PackedByteArray = []
var tag_ticks: PackedInt64Array = []
var end: TagMatch.End = TagMatch.End.GOING_ON
var winner: int = TagMatch.NOBODY

var _timed_out: bool = false
## Time of the first step in seconds, for logs without ticks.
var _first_ts: float = NAN
## Which agents have a record at the last of `ticks`.
var _known: Array[bool] = [true, true]
## Finds the text of lists of numbers: JSON.parse is not exact.
var _lists: RegEx = RegEx.create_from_string('"(pos|vel|forward)"\\s*:\\s*\\[([^\\[\\]]*)\\]')


## Read a file; `error` says what is wrong with it.
static func read(file: String) -> TagTrajectoryFile:
	var trajectory: TagTrajectoryFile = TagTrajectoryFile.new()
	trajectory.path = file
	var problem: String = trajectory._read()
	trajectory.error = "%s: %s" % [file, problem] if problem else ""
	return trajectory


func last_tick() -> int:
	return ticks[ticks.size() - 1]


func _read() -> String:
	var file: FileAccess = FileAccess.open(path, FileAccess.READ)
	if not file:
		return "cannot be read: %s" % error_string(FileAccess.get_open_error())
	if file.get_length() > LARGEST_BYTES:
		return "%d bytes are too many for a match" % file.get_length()
	var line_number: int = 0
	while not file.eof_reached():
		var line: String = file.get_line()
		line_number += 1
		if line.strip_edges():
			var problem: String = _take_line(line)
			if problem:
				return "line %d: %s" % [line_number, problem]
	return _missing()


func _missing() -> String:
	if not start:
		return "empty: expected the log of a match"
	return "truncated: no episode_end" if end == TagMatch.End.GOING_ON else ""


func _take_line(line: String) -> String:
	var json: JSON = JSON.new()
	if json.parse(line) != OK:
		return "not valid JSON: %s" % json.get_error_message()
	var record: Variant = json.data
	if not record is Dictionary or not record.get("type") is String:
		return "a record has a type, this has none"
	if end != TagMatch.End.GOING_ON:
		return "more after the episode_end: a file holds one match"
	if start:
		return _take_record(record, line)
	if record.type != "episode_start":
		return "expected an episode_start before anything else"
	start = TagTrajectoryStart.of(record)
	names = start.agents
	return start.error


func _take_record(record: Dictionary, line: String) -> String:
	match record.type:
		"episode_start":
			return "a second episode_start: a file holds one match"
		"step":
			return _take_step(record, line)
		"tag":
			tag_ticks.append(_tick_of(record))
		"timeout":
			_timed_out = true
		"episode_end":
			return _take_end(record)
	return ""


func _take_end(record: Dictionary) -> String:
	if ticks.is_empty() or false in _known:
		return "agents out of step: each has a record for every tick that is logged"
	if _is_number(record.get("tick")) and int(record.tick) != last_tick():
		return "tick: the last step is at %d, the end at %d" % [last_tick(), int(record.tick)]
	var reason: Variant = record.get("terminal_reason")
	if reason == null:
		reason = "timeout" if _timed_out or tag_ticks.is_empty() else "tag"
	end = TagMatch.End.TAGGED if str(reason) == "tag" else TagMatch.End.TIMED_OUT
	winner = names.find(str(record.get("winner")))
	first_seeker = names.find(start.seeker)
	if first_seeker < 0:
		first_seeker = 0 if facts[0] & Fact.IS_IT else 1
	return ""


func _take_step(record: Dictionary, line: String) -> String:
	var agent: int = _index_of(record.get("agent"))
	var tick: int = _tick_of(record)
	var problem: String = ""
	if agent < 0:
		problem = "agent: expected one of %s" % ", ".join(names)
	elif tick < 0:
		problem = "expected a tick, or the second ts"
	else:
		problem = _make_room(tick, agent)
	if not problem:
		problem = _take_numbers(record, line, numbers.size() - STRIDE * (2 - agent))
	return problem if problem else _take_facts(record, facts.size() - 2 + agent)


func _take_numbers(record: Dictionary, line: String, place: int) -> String:
	for key: String in ["pos", "vel"]:
		if not TagLayout.is_numbers(record.get(key), 3):
			return "%s: expected three numbers" % key
	var has_forward: bool = record.get("forward") != null
	if has_forward and not TagLayout.is_numbers(record.forward, 2):
		return "forward: expected two numbers"
	var texts: Dictionary[String, String] = {"pos": "", "vel": "", "forward": ""}
	for found: RegExMatch in _lists.search_all(line):
		texts[found.get_string(1)] = found.get_string(2)
	_put(place + Part.X, record.pos, texts.pos)
	_put(place + Part.VELOCITY_X, record.vel, texts.vel)
	if has_forward:
		_put(place + Part.FORWARD_X, record.forward, texts.forward)
	else:
		_face(place)
	return ""


## Add a tick; each agent has one record for it.
func _make_room(tick: int, agent: int) -> String:
	if not ticks.is_empty() and tick < last_tick():
		return "tick %d comes after tick %d" % [tick, last_tick()]
	if ticks.is_empty() or tick > last_tick():
		if false in _known:
			return "agents out of step: only one has a record for tick %d" % last_tick()
		_known = [false, false]
		ticks.append(tick)
		numbers.resize(numbers.size() + 2 * STRIDE)
		facts.resize(facts.size() + 2)
		reaches.resize(reaches.size() + 2 * start.rules.rays)
		kinds.resize(kinds.size() + 2 * start.rules.rays)
	if _known[agent]:
		return "agents out of step: a second record of %s for tick %d" % [names[agent], tick]
	_known[agent] = true
	return ""


## Store numbers, from their exact text if it belongs to them.
func _put(place: int, values: Array, text: String) -> void:
	var texts: PackedStringArray = text.split(",")
	for index: int in values.size():
		numbers[place + index] = values[index]
		if texts.size() == values.size():
			var exact: float = TagDecimal.read(texts[index])
			if is_equal_approx(exact, values[index]):
				numbers[place + index] = exact


## Facing for logs without it: the direction of motion, or as before.
func _face(place: int) -> void:
	var x: float = numbers[place + Part.VELOCITY_X]
	var z: float = numbers[place + Part.VELOCITY_Z]
	var pace: float = sqrt(x * x + z * z)
	if pace > STANDING_MPS:
		numbers[place + Part.FORWARD_X] = x / pace
		numbers[place + Part.FORWARD_Z] = z / pace
		return
	var before: int = place - 2 * STRIDE
	numbers[place + Part.FORWARD_X] = numbers[before + Part.FORWARD_X] if before >= 0 else 0.0
	numbers[place + Part.FORWARD_Z] = numbers[before + Part.FORWARD_Z] if before >= 0 else 1.0


func _take_facts(record: Dictionary, place: int) -> String:
	if not record.get("is_it") is bool:
		return "is_it: expected true or false"
	var other: int = place ^ 1
	if not false in _known and record.is_it == (facts[other] & Fact.IS_IT != 0):
		return "is_it: expected one seeker at tick %d" % last_tick()
	var known: int = Fact.IS_IT if record.is_it else 0
	known |= 0 if is_same(record.get("on_floor"), false) else Fact.ON_FLOOR
	known |= Fact.IMMUNE if is_same(record.get("immune"), true) else 0
	var rays: int = start.rules.rays
	var dists: Variant = record.get("dists")
	var types: Variant = record.get("types")
	if TagLayout.is_numbers(dists, rays) and TagLayout.is_numbers(types, rays):
		known |= Fact.HAS_RAYS
		for ray: int in rays:
			reaches[place * rays + ray] = dists[ray]
			kinds[place * rays + ray] = int(types[ray])
	var seen: Variant = record.get("sees")
	if seen == null:
		seen = types is Array and 2.0 in types
	known |= Fact.SEES if is_same(seen, true) else 0
	facts[place] = known
	return ""


## Index of an agent; if the first record has no names, the first two steps name the agents.
func _index_of(name: Variant) -> int:
	if names.size() < 2 and name is String and not name in names:
		names.append(name)
	return names.find(str(name))


## Tick of a record; without one, counted from the time of the first step.
func _tick_of(record: Dictionary) -> int:
	if _is_number(record.get("tick")):
		return int(record.tick)
	if not _is_number(record.get("ts")):
		return -1
	if is_nan(_first_ts):
		_first_ts = record.ts
	return roundi((record.ts - _first_ts) * start.rules.ticks_per_second)


static func _is_number(value: Variant) -> bool:
	return TagLayout.is_numbers([value], 1)
