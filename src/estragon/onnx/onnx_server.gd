extends SceneTree
## Runs ONNX models for Python over a local channel, so that one process can run many.
##
##   godot --headless --path godot -s onnx_server.gd -- --channel=PORT
##
## A frame is the u32 length of a JSON text, the text, then the numbers of the tensors it lists, in
## order: float32 for floating types, else int64. Requests, by `do`:
##
## `load` with a `path`: answers with `error`, `inputs`, `outputs` and `operators`.
## `run` with `tensors`: answers with `error` and `tensors`.
## `time` with `tensors` and `seconds`: answers with the fewest microseconds of a run, `usec`.
## `profile` with `tensors` and `seconds`: answers with `steps` and, of each, the fewest `usec`.
## `ask` with a `script`: answers with what that script's `answer(request, plan, tensors)` returns;
## for tests and benchmarks. The script's object is kept for the next request.
##
## Errors of scripts or of Godot itself on the way are in `complaints`; before Godot 4.5 those are
## only printed.

## `Logger` was added in Godot 4.5; a file that extends it would not load before.
const ERROR_LOG: String = """
extends Logger

var errors: PackedStringArray = []


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
	if error_type != ERROR_TYPE_WARNING:
		errors.append("%s:%d: %s" % [file, line, rationale if rationale else code])
"""

var _log: Object
var _channel: TagChannel = TagChannel.new()
var _plan: RLRuntime.OnnxPlan
var _scripts: Dictionary[String, Object] = {}


func _initialize() -> void:
	var port: int = 0
	for word: String in OS.get_cmdline_user_args():
		if word.begins_with("--channel="):
			port = word.get_slice("=", 1).to_int()
	if not _channel.open(port):
		printerr("onnx_server: " + _channel.closed)
		quit(2)
		return
	if ClassDB.class_exists("Logger") and OS.has_method("add_logger"):
		var script: GDScript = GDScript.new()
		script.source_code = ERROR_LOG
		script.reload()
		_log = script.new()
		OS.call("add_logger", _log)
	_channel.send(JSON.stringify({"serves": "onnx"}).to_utf8_buffer())


func _process(_delta: float) -> bool:
	var frame: PackedByteArray = _channel.receive()
	if _channel.closed:
		return true
	var length: int = frame.decode_u32(0)
	var request: Dictionary = JSON.parse_string(frame.slice(4, 4 + length).get_string_from_utf8())
	var given: Array[RLRuntime.OnnxTensor] = _tensors(
		request.get("tensors", []), frame.slice(4 + length)
	)
	var made: Array[RLRuntime.OnnxTensor] = []
	var said: Dictionary = {"error": "a script failed"}
	match request["do"]:
		"load":
			said.merge(_load(request["path"]), true)
		"run":
			made = _plan.run(given)
			said["error"] = _plan.error
		"time":
			said.merge(_time(given, request["seconds"]), true)
		"profile":
			said.merge(_profile(given, request["seconds"]), true)
		"ask":
			var path: String = request["script"]
			if path not in _scripts:
				_scripts[path] = (load(path) as GDScript).new()
			said.merge(_scripts[path].call("answer", request, _plan, given), true)
	if _log:
		said["complaints"] = _log.get("errors")
		_log.set("errors", PackedStringArray())
	_answer(said, made)
	return false


## The fewest: what else goes on in the machine only adds.
func _time(given: Array[RLRuntime.OnnxTensor], seconds: float) -> Dictionary:
	_plan.run(given)
	var least: float = INF
	var stop: int = Time.get_ticks_usec() + int(1e6 * seconds)
	while Time.get_ticks_usec() < stop and not _plan.error:
		# few at once: the shorter, the likelier nothing comes between
		var runs: int = 1 if least > 100.0 else 5
		var started: int = Time.get_ticks_usec()
		for _run: int in runs:
			_plan.run(given)
		least = minf(least, (Time.get_ticks_usec() - started) / float(runs))
	return {"usec": least, "error": _plan.error}


func _profile(given: Array[RLRuntime.OnnxTensor], seconds: float) -> Dictionary:
	var least: PackedInt64Array = []
	var stop: int = Time.get_ticks_usec() + int(1e6 * seconds)
	_plan.is_timed = true
	while least.is_empty() or (Time.get_ticks_usec() < stop and not _plan.error):
		_plan.run(given)
		least = least if least else _plan.usec.duplicate()
		for step: int in least.size():
			least[step] = mini(least[step], _plan.usec[step])
	_plan.is_timed = false
	return {"steps": _plan.step_names(), "usec": Array(least), "error": _plan.error}


func _load(path: String) -> Dictionary:
	var started: int = Time.get_ticks_usec()
	var file: RLRuntime.OnnxFile = RLRuntime.OnnxFile.new()
	_plan = RLRuntime.OnnxPlan.new()
	if file.read(RLRuntime.OnnxSource.open(path)):
		_plan.prepare(file)
	return {
		"error": file.error if file.error else _plan.error,
		"inputs": _plan.inputs.map(_described),
		"outputs": _plan.outputs.map(_described),
		"operators": _plan.operators,
		"usec": Time.get_ticks_usec() - started,
		"memory": OS.get_static_memory_usage(),
	}


func _described(port: RLRuntime.OnnxPort) -> Dictionary:
	return {
		"name": port.name,
		"type": port.type,
		"dims": Array(port.dims) if port.has_shape else null,
		"free": port.free,
	}


func _tensors(described: Array, numbers: PackedByteArray) -> Array[RLRuntime.OnnxTensor]:
	var found: Array[RLRuntime.OnnxTensor] = []
	var at: int = 0
	for entry: Dictionary in described:
		var dims: PackedInt64Array = PackedInt64Array(entry["dims"])
		var tensor: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.zeros(dims, entry["type"])
		var stop: int = at + tensor.count() * (4 if tensor.is_float() else 8)
		if tensor.is_float():
			tensor.floats = numbers.slice(at, stop).to_float32_array()
		else:
			tensor.ints = numbers.slice(at, stop).to_int64_array()
		at = stop
		found.append(tensor)
	return found


func _answer(said: Dictionary, tensors: Array[RLRuntime.OnnxTensor]) -> void:
	var described: Array[Dictionary] = []
	var numbers: PackedByteArray = []
	for tensor: RLRuntime.OnnxTensor in tensors:
		described.append({"type": tensor.type, "dims": Array(tensor.dims)})
		numbers.append_array(
			tensor.floats.to_byte_array() if tensor.is_float() else tensor.ints.to_byte_array()
		)
	said["tensors"] = described
	var text: PackedByteArray = JSON.stringify(said).to_utf8_buffer()
	var frame: PackedByteArray = []
	frame.resize(4)
	frame.encode_u32(0, text.size())
	frame.append_array(text)
	frame.append_array(numbers)
	_channel.send(frame)
