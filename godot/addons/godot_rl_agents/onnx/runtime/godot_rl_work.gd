extends RefCounted
## One prediction, on whichever thread: for one observation or a list of them, all in one run where
## the model allows it. It stands on its own, as a thread may outlive the model that began it.

var error: String = ""
var duration_usec: int = 0

var _plan: RLRuntime.OnnxPlan
var _batch: RLRuntime.GodotRLBatch
var _is_many: bool
var _many: Array
var _agents: Array
var _results: Array[Dictionary] = []


func _init(
	plan: RLRuntime.OnnxPlan, batch: RLRuntime.GodotRLBatch, obs: Variant, agent: Variant
) -> void:
	_plan = plan
	_batch = batch
	_is_many = obs is Array and (obs.is_empty() or typeof(obs[0]) >= TYPE_DICTIONARY)
	_many = obs if _is_many else [obs]
	if agent is Array:
		_agents = agent
	else:
		_agents = range(_many.size()) if agent == null else [agent]
	if not _plan:
		error = "no model is loaded"
	elif _agents.size() != _many.size():
		error = "%d agents for %d observations" % [_agents.size(), _many.size()]


func run() -> void:
	var begin: int = Time.get_ticks_usec()
	if _many and not error:
		_results = _run()
	duration_usec = Time.get_ticks_usec() - begin


## What came of it: all outputs of the one observation, or a list of them for a list.
func result() -> Variant:
	if _is_many:
		return _results
	return _results[0] if _results else {}


## All agents in one run where the model allows it, else one after another.
func _run() -> Array[Dictionary]:
	if _batch.is_free or _many.size() == 1:
		return _run_batch(_many, _agents)
	var results: Array[Dictionary] = []
	for index: int in _many.size():
		results.append_array(_run_batch([_many[index]], [_agents[index]]))
		if error:
			return []
	return results


func _run_batch(many: Array, agents: Array) -> Array[Dictionary]:
	var given: Array[RLRuntime.OnnxTensor] = _batch.inputs(many, agents)
	error = _batch.error
	if error:
		return []
	var made: Array[RLRuntime.OnnxTensor] = _plan.run(given)
	error = _plan.error
	if error:
		return []
	var results: Array[Dictionary] = _batch.outputs(made, agents)
	error = _batch.error
	return results
