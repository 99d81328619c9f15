extends RefCounted
## What tests and benchmarks ask of the ONNX server beyond running a model.
##
## `ask` is one of: `plain` with `sizes` and `seconds` for the `usec` of a network of these sizes in
## plain loops; and of a GodotRLModel `open` with a `path`, `predict`, `act` and `reset` with their
## arguments, `work` for `predict` in a thread; `threads` says whether there are any (`is_on`).

var _model: GodotRLModel = GodotRLModel.new()


func answer(
	request: Dictionary, _plan: RLRuntime.OnnxPlan, _given: Array[RLRuntime.OnnxTensor]
) -> Dictionary:
	if request["ask"] == "plain":
		var plain: OnnxPlain = OnnxPlain.new(PackedInt64Array(request["sizes"]))
		return {"usec": _time(plain.run, request["seconds"]), "error": ""}
	return _play(request)


## What a game would ask of a model.
func _play(request: Dictionary) -> Dictionary:
	var found: Variant = null
	match request["ask"]:
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
		"threads":
			GodotRLModel._has_threads = request["is_on"]
		"reset":
			_model.reset(request["agent"])
	return {
		"error": _model.error,
		"found": found,
		"has_memory": _model.has_memory(),
		"output_size": _model.output_size() if _model.is_loaded() else 0,
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
