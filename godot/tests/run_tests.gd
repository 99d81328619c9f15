extends SceneTree
## Runs the tests of res://tests without a screen; one JSON object a line says what came of each.
##
##   godot --headless --path godot --fixed-fps 60 -s res://tests/run_tests.gd -- [options]
##
##   --only=SUBSTRING  tests whose name, `file.method`, contains it
##   --json=FILE       all results as one JSON file too; a full path, Godot changes folders
##   --limit-sec=N     end the process when one test takes longer than this; 120 if not given
##
## The last line is `N passed, N failed`. The exit code is 0 only if there were tests and all
## passed. A failure is: a check that fails, a test that checks nothing, an error that is logged
## meanwhile (before Godot 4.5 those are only printed), a test that outlasts its frame limit or
## blocks the process, one that ends the process, a script that does not load.

const FOLDER: String = "res://tests/"
const BAD_INPUT: int = 2
const WATCH_MSEC: int = 50
## After a test that was given up: the frames in which its remains may still complain.
const DRAIN_FRAMES: int = 2
## How many problems a message tells in full.
const TOLD: int = 4
## Collects the errors that Godot and scripts report. `Logger` came with Godot 4.5, and a file
## that extends it would not load before, so it is made from its text and only where it can be.
const ERROR_LOG: String = """
extends Logger

var _errors: PackedStringArray = []
var _lock: Mutex = Mutex.new()


func take() -> PackedStringArray:
	_lock.lock()
	var taken: PackedStringArray = _errors
	_errors = []
	_lock.unlock()
	return taken


func _log_error(
	_function: String,
	file: String,
	line: int,
	code: String,
	rationale: String,
	_editor_notify: bool,
	error_type: int,
	_backtraces: Array[ScriptBacktrace]
) -> void:
	if error_type == ERROR_TYPE_WARNING:
		return
	_lock.lock()
	_errors.append("%s:%d: %s" % [file, line, rationale if rationale else code])
	_lock.unlock()
"""

var _only: String = ""
var _json_path: String = ""
var _limit_sec: float = 120.0
var _results: Array[Dictionary] = []
## The test that runs, or "".
var _current: String = ""
var _started_usec: int = 0
var _completed: Dictionary[String, bool] = {}
var _ended: bool = false
## Made from ERROR_LOG, or null where Godot has no loggers.
var _log: Object
var _watchdog: Thread = Thread.new()
## Held to read or change any of the above from here on: the watchdog does too.
var _lock: Mutex = Mutex.new()


func _initialize() -> void:
	var problem: String = _take_options()
	if problem:
		printerr("run_tests: " + problem)
		_ended = true
		quit(BAD_INPUT)
		return
	if ClassDB.class_exists("Logger") and OS.has_method("add_logger"):
		var script: GDScript = GDScript.new()
		script.source_code = ERROR_LOG
		script.reload()
		_log = script.new()
		OS.call("add_logger", _log)
	_watchdog.start(_watch)
	_run()


func _finalize() -> void:
	if not _ended:
		_record(_current, false, "it ended the process")
		_end()
	if _watchdog.is_started():
		_watchdog.wait_to_finish()


func _take_options() -> String:
	for word: String in OS.get_cmdline_user_args():
		var value: String = word.substr(word.find("=") + 1)
		if word.begins_with("--only="):
			_only = value
		elif word.begins_with("--json="):
			_json_path = value
		elif word.begins_with("--limit-sec=") and value.is_valid_float():
			_limit_sec = value.to_float()
		else:
			return "unknown option '%s'; there are --only=, --json=, --limit-sec=" % word
	return ""


func _run() -> void:
	await physics_frame
	for file: String in DirAccess.get_files_at(FOLDER):
		if file.begins_with("test_") and file.ends_with(".gd"):
			await _run_file(file)
	_end()


func _run_file(file: String) -> void:
	_begin(file)
	var script: GDScript = load(FOLDER + file) as GDScript
	if not script or not script.can_instantiate():
		_record(file, false, "it does not load: " + _tell(_take_errors()))
		return
	var base: Script = script.get_base_script()
	if not base or base.get_global_name() != "TagTest":
		_record(file, false, "it does not extend TagTest")
		return
	var tests: PackedStringArray = []
	for method: Dictionary in script.get_script_method_list():
		if str(method.name).begins_with("test_"):
			tests.append(method.name)
	if tests.is_empty():
		_record(file, false, "it has no method test_*")
	for test: String in tests:
		var name: String = file.get_basename() + "." + test
		if not _only or name.contains(_only):
			await _run_test(script, name, test)


func _run_test(script: GDScript, name: String, method: String) -> void:
	_begin(name)
	var test: TagTest = script.new()
	root.add_child(test)
	_complete(test, method, name)
	var frames_played: int = 0
	while not _completed.has(name) and frames_played < test.frame_limit:
		await physics_frame
		frames_played += 1
	var problems: PackedStringArray = test.failures
	if not _completed.has(name):
		problems.append("it was given up after %d frames" % frames_played)
	elif test.checks == 0:
		problems.append("it checked nothing")
	for error: String in _take_errors():
		if not _is_allowed(error, test.allowed_errors):
			problems.append(error)
	test.free()
	if not _completed.has(name):
		for _frame: int in DRAIN_FRAMES:
			await physics_frame
		_take_errors()
	_record(name, problems.is_empty(), _tell(problems))


## The first few problems in full.
func _tell(problems: PackedStringArray) -> String:
	var told: PackedStringArray = problems.slice(0, TOLD)
	if problems.size() > TOLD:
		told.append("and %d more" % (problems.size() - TOLD))
	return "; ".join(told)


func _complete(test: TagTest, method: String, name: String) -> void:
	await test.call(method)
	_completed[name] = true


func _begin(name: String) -> void:
	_lock.lock()
	_current = name
	_started_usec = Time.get_ticks_usec()
	_lock.unlock()
	_take_errors()


func _record(name: String, passed: bool, message: String) -> void:
	_lock.lock()
	var result: Dictionary = {
		"test": name,
		"passed": passed,
		"message": message,
		"seconds": snappedf((Time.get_ticks_usec() - _started_usec) / 1e6, 0.001),
	}
	_results.append(result)
	_current = ""
	print(JSON.stringify(result, "", false))
	_lock.unlock()


## Report, and leave with the exit code.
func _end() -> void:
	_lock.lock()
	_ended = true
	var failed: int = 0
	for result: Dictionary in _results:
		failed += 0 if result.passed else 1
	var passed: int = _results.size() - failed
	if _results.is_empty():
		printerr("run_tests: no test's name contains '%s'" % _only)
	var good: bool = _write_json(passed, failed) and failed == 0 and passed > 0
	print("%d passed, %d failed" % [passed, failed])
	_lock.unlock()
	quit(0 if good else 1)


func _write_json(passed: int, failed: int) -> bool:
	if not _json_path:
		return true
	var file: FileAccess = FileAccess.open(_json_path, FileAccess.WRITE)
	if not file:
		printerr("run_tests: cannot write %s" % _json_path)
		return false
	var report: Dictionary = {
		"godot": Engine.get_version_info().string,
		"passed": passed,
		"failed": failed,
		"tests": _results,
	}
	file.store_string(JSON.stringify(report, "  ", false) + "\n")
	file.close()
	return true


func _take_errors() -> PackedStringArray:
	return _log.call("take") if _log else PackedStringArray()


func _is_allowed(error: String, allowed: PackedStringArray) -> bool:
	for part: String in allowed:
		if error.contains(part):
			return true
	return false


## In a thread of its own, since a test that never yields leaves the main one no chance.
func _watch() -> void:
	while true:
		OS.delay_msec(WATCH_MSEC)
		_lock.lock()
		var over: bool = _ended
		var name: String = _current
		var late: bool = Time.get_ticks_usec() - _started_usec > _limit_sec * 1e6
		_lock.unlock()
		if over:
			return
		if name and late:
			_record(name, false, "it blocked for more than %s s" % _limit_sec)
			_end()
			OS.crash("a test does not return: " + name)
