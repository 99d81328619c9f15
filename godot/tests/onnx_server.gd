extends SceneTree
## Runs ONNX models for Python over a local channel, so that one process can run many.
##
##   godot --headless --path godot -s res://tests/onnx_server.gd -- --channel=PORT
##
## A frame is u32 length of a JSON text, the text, then the numbers of the tensors it lists, in
## order: float32 for floating types, else int64. Asked for `load` with a `path`, it answers with
## `error`, `inputs`, `outputs`, `operators`; for `run` with `tensors`, with `error` and `tensors`;
## for `time` with `tensors` and `seconds`, with the `usec` of a run; for `plain` with `sizes` and
## `seconds`, with the `usec` of a network of these sizes in plain loops. A GodotRLModel answers
## `open` with a `path`, `predict`, `act` and `reset` with its arguments, `work` for `predict` in a
## thread. Errors of scripts or of Godot itself on the way are in `complaints`; before Godot 4.5
## those are only printed.

## As in run_tests.gd: `Logger` came with Godot 4.5, a file that extends it would not load before.
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
var _plan: RLAddon.OnnxPlan
var _model: GodotRLModel = GodotRLModel.new()


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
	var given: Array[RLAddon.OnnxTensor] = _tensors(
		request.get("tensors", []), frame.slice(4 + length)
	)
	var made: Array[RLAddon.OnnxTensor] = []
	var said: Dictionary = {"error": "a script failed"}
	match request["do"]:
		"load":
			said.merge(_load(request["path"]), true)
		"run":
			made = _plan.run(given)
			said["error"] = _plan.error
		"time":
			var run: Callable = func() -> void: _plan.run(given)
			said = {"usec": _time(run, request["seconds"]), "error": _plan.error}
		"plain":
			var plain: OnnxPlain = OnnxPlain.new(PackedInt64Array(request["sizes"]))
			said = {"usec": _time(plain.run, request["seconds"]), "error": ""}
		_:
			said.merge(_play(request), true)
	if _log:
		said["complaints"] = _log.get("errors")
		_log.set("errors", PackedStringArray())
	_answer(said, made)
	return false


func _load(path: String) -> Dictionary:
	var started: int = Time.get_ticks_usec()
	var file: RLAddon.OnnxFile = RLAddon.OnnxFile.new()
	_plan = RLAddon.OnnxPlan.new()
	if file.read(RLAddon.OnnxSource.open(path)):
		_plan.prepare(file)
	return {
		"error": file.error if file.error else _plan.error,
		"inputs": _plan.inputs.map(_described),
		"outputs": _plan.outputs.map(_described),
		"operators": _plan.operators,
		"usec": Time.get_ticks_usec() - started,
		"memory": OS.get_static_memory_usage(),
	}


## What a game would ask of a model.
func _play(request: Dictionary) -> Dictionary:
	var found: Variant = null
	match request["do"]:
		"open":
			found = _model.load(request["path"])
		"predict":
			found = _model.predict(request["obs"], request["agents"])
		"work":
			found = _model.start(request["obs"], request["agents"])
			found = _model.result() if found else null
		"act":
			_model.random.seed = int(request["seed"])
			found = _model.act(
				request["obs"], request["space"], request["agents"], request["is_deterministic"]
			)
		"reset":
			_model.reset(request["agent"])
	return {
		"error": _model.error,
		"found": found,
		"has_memory": _model.has_memory(),
		"output_size": _model.output_size() if _model.is_loaded() else 0,
	}


func _described(port: RLAddon.OnnxPort) -> Dictionary:
	return {
		"name": port.name,
		"type": port.type,
		"dims": Array(port.dims) if port.has_shape else null,
		"free": port.free,
	}


## The fewest microseconds of a call: what else goes on in the machine only adds.
func _time(run: Callable, seconds: float) -> float:
	run.call()
	var least: float = INF
	var stop: int = Time.get_ticks_usec() + int(1e6 * seconds)
	while Time.get_ticks_usec() < stop:
		# few at once: the shorter, the likelier nothing comes between
		var runs: int = 1 if least > 100.0 else 5
		var started: int = Time.get_ticks_usec()
		for _run: int in runs:
			run.call()
		least = minf(least, (Time.get_ticks_usec() - started) / float(runs))
	return least


func _tensors(described: Array, numbers: PackedByteArray) -> Array[RLAddon.OnnxTensor]:
	var found: Array[RLAddon.OnnxTensor] = []
	var at: int = 0
	for entry: Dictionary in described:
		var dims: PackedInt64Array = PackedInt64Array(entry["dims"])
		var tensor: RLAddon.OnnxTensor = RLAddon.OnnxTensor.zeros(dims, entry["type"])
		var stop: int = at + tensor.count() * (4 if tensor.is_float() else 8)
		if tensor.is_float():
			tensor.floats = numbers.slice(at, stop).to_float32_array()
		else:
			tensor.ints = numbers.slice(at, stop).to_int64_array()
		at = stop
		found.append(tensor)
	return found


func _answer(said: Dictionary, tensors: Array[RLAddon.OnnxTensor] = []) -> void:
	var described: Array[Dictionary] = []
	var numbers: PackedByteArray = []
	for tensor: RLAddon.OnnxTensor in tensors:
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
