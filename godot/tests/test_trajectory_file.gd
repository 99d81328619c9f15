extends TagTest
## Logged matches read from files: older ones too, and what is wrong with those that are no use.

const STEP: Dictionary = {
	"type": "step",
	"agent": "Agent1",
	"tick": 0,
	"pos": [1.0, 0.501, 2.0],
	"vel": [0.0, 0.0, 0.0],
	"is_it": true,
}

var _path: String = "user://test_trajectory_file_%d.jsonl" % OS.get_process_id()


func _exit_tree() -> void:
	DirAccess.remove_absolute(_path)


func test_decimals_are_read_to_the_last_bit() -> void:
	var texts: Dictionary[String, String] = {
		"0.1": "9a9999999999b93f",
		"-0.30000000000000004": "343333333333d3bf",
		"7.312715117751977": "8fd64e6438401d40",
		"9.999999999999998": "ffffffffffff2340",
		"6.123233995736766e-17": "075c143326a6913c",
		"1e-07": "48afbc9af2d77a3e",
		"123456789.12345679": "756b7e54346f9d41",
		"-0.0": "0000000000000080",
		"12": "0000000000002840",
	}
	for text: String in texts:
		var bytes: PackedByteArray = PackedFloat64Array([TagDecimal.read(text)]).to_byte_array()
		check_equal(bytes.hex_encode(), texts[text], text)


func test_what_godot_prints_is_read_back() -> void:
	var random: RandomNumberGenerator = RandomNumberGenerator.new()
	random.seed = 5
	for _try: int in 2000:
		var value: float = (random.randf() - 0.5) * 10.0 ** random.randi_range(-18, 3)
		check_equal(TagDecimal.read(String.num_scientific(value)), value, str(value))


func test_an_older_log_is_shown_by_what_it_says() -> void:
	var lines: Array[Dictionary] = [{"type": "episode_start"}]
	for moment: int in 3:
		for name: String in ["Red", "Blue"]:
			var step: Dictionary = STEP.duplicate(true)
			step.erase("tick")
			step.merge({"agent": name, "is_it": name == "Blue", "ts": 7.0 + 0.05 * moment}, true)
			step.vel = [0.0 if moment == 0 else -2.0, 0.0, 0.0]
			step.note = "ignored"
			lines.append(step)
	lines.append({"type": "tag", "attacker": "Blue", "target": "Red", "ts": 7.1})
	lines.append({"type": "episode_end", "winner": "Blue", "ts": 7.1})
	var trajectory: TagTrajectoryFile = _read(lines)
	check_equal(trajectory.error, "", "accepted")
	check_equal(trajectory.ticks, PackedInt64Array([0, 3, 6]), "ticks from seconds")
	check_equal(trajectory.names, PackedStringArray(["Red", "Blue"]), "names")
	check_equal([trajectory.first_seeker, trajectory.winner], [1, 1], "the seeker, who wins")
	check_equal(trajectory.end, TagMatch.End.TAGGED, "how it ended")
	check_equal(trajectory.start.layout.name, "colonnade", "the default layout")
	var facing: PackedFloat64Array = []
	for moment: int in 3:
		facing.append(trajectory.numbers[16 * moment + TagTrajectoryFile.Part.FORWARD_X])
	check_equal(facing, PackedFloat64Array([0.0, -1.0, -1.0]), "facing where it moves")


func test_what_is_wrong_is_told_with_its_line() -> void:
	var start: Dictionary = {"type": "episode_start"}
	var other: Dictionary = _changed({"agent": "Agent2", "is_it": false})
	var end: Dictionary = {"type": "episode_end", "terminal_reason": "timeout"}
	_expect("line 1: a record has a type", [{"kind": "episode_start"}])
	_expect("line 1: expected an episode_start", [STEP])
	_expect("line 2: a second episode_start", [start, start])
	_expect("line 1: format 2", [start.merged({"format": 2})])
	_expect("line 1: arena_size_m: ", [start.merged({"arena_size_m": [1.0, "x"]})])
	_expect("line 1: ticks_per_second: ", [start.merged({"ticks_per_second": 0})])
	_expect("line 1: rays: ", [start.merged({"eyes": {"rays": 5000}})])
	_expect("line 1: eyes: ", [start.merged({"eyes": [36]})])
	_expect("line 1: agents: ", [start.merged({"agents": ["One", "One"]})])
	_expect("line 1: layout", [start.merged({"layout": {"boxes": [{"at_m": [1]}]}})])
	_expect("line 2: pos: ", [start, _changed({"pos": [1.0, 2.0]})])
	_expect("line 2: vel: ", [start, _changed({"vel": [1.0, null, 0.0]})])
	_expect("line 2: forward: ", [start, _changed({"forward": "north"})])
	_expect("line 2: is_it: ", [start, _changed({"is_it": 1})])
	_expect("line 2: expected a tick", [start, _changed({"tick": null})])
	_expect("line 3: agents out of step", [start, STEP, STEP])
	_expect("line 3: agents out of step", [start, STEP, _changed({"tick": 3})])
	_expect("line 4: agents out of step", [start, STEP, other, _changed({"tick": 0})])
	_expect("line 4: agent: expected one of", [start, STEP, other, _changed({"agent": "X"})])
	_expect(
		"line 3: is_it: expected one seeker", [start, STEP, other.merged({"is_it": true}, true)]
	)
	_expect("line 3: agents out of step", [start, STEP, end])
	_expect("line 2: agents out of step", [start, end])
	_expect("line 4: tick: the last step is at 0", [start, STEP, other, end.merged({"tick": 9})])
	_expect("line 5: more after the episode_end", [start, STEP, other, end, end])
	_expect("truncated: no episode_end", [start, STEP, other])
	_expect("", [start, STEP, other, end])


func test_files_that_are_no_logs() -> void:
	check(TagTrajectoryFile.read("user://none.jsonl").error.contains("cannot be read"), "missing")
	check(_read_text("").error.contains("empty"), "empty")
	check(_read_text("\n\n").error.contains("empty"), "blank")
	check(_read_text('{"type": "episode_start"').error.contains("not valid JSON"), "cut off")
	check(_read_text("[1, 2]\n").error.contains("line 1: a record has a type"), "a list")


func _changed(changes: Dictionary) -> Dictionary:
	return STEP.merged(changes, true)


func _expect(problem: String, lines: Array) -> void:
	var error: String = _read(lines).error
	var right: bool = error.contains(problem) if problem else not error
	check(right, "expected '%s', got '%s'" % [problem, error])


func _read(lines: Array) -> TagTrajectoryFile:
	var text: String = ""
	for line: Dictionary in lines:
		text += JSON.stringify(line) + "\n"
	return _read_text(text)


func _read_text(text: String) -> TagTrajectoryFile:
	var file: FileAccess = FileAccess.open(_path, FileAccess.WRITE)
	file.store_string(text)
	file.close()
	return TagTrajectoryFile.read(_path)
