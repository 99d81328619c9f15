class_name GodotRLModel
extends RefCounted
## A trained policy from an `.onnx` file, run by Godot alone.
##
##     var model := GodotRLModel.new()
##     if not model.load("res://policy.onnx"):
##         push_error(model.error)
##     var action: Dictionary = model.act(obs, {"move": {"size": 2, "action_type": "continuous"}})
##
## An observation is a list of numbers, or a Dictionary of such lists for models with several
## inputs. Many agents are decided quickest together, by a list of observations. A model with a
## memory keeps a state for every agent, by any id you like; `reset` it when an episode begins.
## Loading again swaps the policy; if that fails, the old one stays.

## The output that holds actions, and the input that counts the steps of a sequence.
const OUTPUT: String = "output"
const LENGTHS: String = "seq_lens"
## What trainers call the output that says how much they expect to get.
const VALUES: Array[String] = ["value", "values", "vf_preds"]

## RLRuntime, once a model has needed it.
static var _runtime: GDScript
static var _has_threads: bool = not OS.has_feature("nothreads")

## Why the last call failed, or "".
var error: String = ""
## What the model's maker wrote beside the graph, by key.
var metadata: Dictionary[String, String] = {}
## What samples actions; seed it to make them repeatable.
var random: RandomNumberGenerator = RandomNumberGenerator.new()
## How long the last prediction took.
var duration_usec: int = 0

## These four are of classes that RLRuntime lists. Neither it nor RLAddon is named here: that would
## load all their scripts into every game that names this class.
var _plan: RefCounted
var _batch: RefCounted
## For observations that are only to be tried.
var _trial: RefCounted
var _work: RefCounted
var _output: int = 0
var _task: int = -1


func _notification(what: int) -> void:
	if what == NOTIFICATION_PREDELETE and _task >= 0:
		WorkerThreadPool.wait_for_task_completion(_task)


## Open a model: an `.onnx` file, or a `.zip` of Estragon's trainer with the policy in it; `res://`,
## `user://` or a full path. False, and `error` says why, if it cannot run.
func load(path: String) -> bool:
	return _take(_scripts().OnnxSource.open(path), path)


## The same from a resource that Godot imported.
func load_resource(resource: Resource) -> bool:
	return _take(_scripts().OnnxSource.of(resource), resource.resource_path)


func is_loaded() -> bool:
	return _plan != null


## The inputs that are observations, by name; a free size is -1.
func observation_shapes() -> Dictionary[String, PackedInt64Array]:
	if not _batch:
		return {}
	return _batch.observation_shapes()


func output_names() -> PackedStringArray:
	var names: PackedStringArray = []
	for port: RefCounted in _plan.outputs if _plan else []:
		names.append(port.name)
	return names


## How many numbers the action output has for one agent; 0 if only a run would tell.
func output_size() -> int:
	return _plan.output_width(_output) if _plan else 0


## Whether it remembers, so that `reset` matters.
func has_memory() -> bool:
	return _batch != null and not _batch.memory.is_empty()


## Why this observation cannot be given to it, or ""; also while a worker thread uses it.
func misfit(obs: Variant) -> String:
	if not _plan:
		return "no model is loaded"
	_trial.inputs([obs], [null])
	return _trial.error


## Of all outputs, the numbers that say actions.
func actions_in(predicted: Dictionary) -> PackedFloat32Array:
	return predicted.get(_plan.outputs[_output].name, PackedFloat32Array())


## Of all outputs, how much the policy expects to get; NAN if it does not say.
func value_in(predicted: Dictionary) -> float:
	for name: String in VALUES:
		var numbers: PackedFloat32Array = predicted.get(name, PackedFloat32Array())
		if numbers:
			return numbers[0]
	return NAN


## All outputs, by name, for one observation or a list of them.
##
## `agent` is the id whose memory is used, or a list of ids, one an observation; 0, 1, 2 … if not
## given. Returns a Dictionary of PackedFloat32Array for one, an Array of those for a list; empty on
## an `error`.
func predict(obs: Variant, agent: Variant = null) -> Variant:
	_join()
	var work: RefCounted = _scripts().GodotRLWork.new(_plan, _batch, obs, agent)
	work.run()
	_note(work)
	return work.result()


## Begin to predict on a worker thread; false while it still works on something. Where there are no
## threads, as in most builds for the web, it predicts at once.
func start(obs: Variant, agent: Variant = null) -> bool:
	if is_busy():
		return false
	_join()
	var kept: Variant = obs.duplicate(true) if obs is Array or obs is Dictionary else obs
	_work = _scripts().GodotRLWork.new(_plan, _batch, kept, agent)
	if _has_threads:
		_task = WorkerThreadPool.add_task(_work.run, true, "onnx")
	else:
		_work.run()
		_note(_work)
	return true


func is_busy() -> bool:
	return _task >= 0 and not WorkerThreadPool.is_task_completed(_task)


## What `start` brought, as `predict` would return it; waits where it is not done.
func result() -> Variant:
	_join()
	return _work.result() if _work else null


## The action for an observation, by the keys of an action space as `get_action_space` has it:
## a whole number for a discrete action, a list of numbers from -1 to 1 for a continuous one.
##
## With a list of observations, a list of actions. Not deterministic: discrete actions are drawn,
## and continuous ones where the model gives their spread.
func act(
	obs: Variant, action_space: Dictionary, agent: Variant = null, is_deterministic: bool = true
) -> Variant:
	var predicted: Variant = predict(obs, agent)
	if predicted is Dictionary:
		return _action(predicted, action_space, is_deterministic)
	var actions: Array[Dictionary] = []
	for one: Dictionary in predicted:
		actions.append(_action(one, action_space, is_deterministic))
	return actions


## Forget what one agent has seen, or what all have.
func reset(agent: Variant = null) -> void:
	_join()
	if _batch:
		_batch.reset(agent)


static func _scripts() -> GDScript:
	if not _runtime:
		var folder: String = (GodotRLModel as Script).resource_path.get_base_dir()
		_runtime = ResourceLoader.load(folder.path_join("rl_runtime.gd"))
	return _runtime


func _take(source: RefCounted, path: String) -> bool:
	_join()
	error = ""
	var file: RefCounted = _scripts().OnnxFile.new()
	var plan: RefCounted = _scripts().OnnxPlan.new()
	if not file.read(source):
		error = "%s: %s" % [path, file.error]
	elif not plan.prepare(file):
		error = "%s: %s" % [path, plan.error]
	if error:
		return false
	_plan = plan
	metadata = file.metadata
	_batch = _scripts().GodotRLBatch.new(plan)
	_trial = _scripts().GodotRLBatch.new(plan)
	_output = maxi(output_names().find(OUTPUT), 0)
	return true


func _action(predicted: Dictionary, action_space: Dictionary, is_deterministic: bool) -> Dictionary:
	if predicted.is_empty():
		return {}
	var numbers: PackedFloat32Array = actions_in(predicted)
	var decoder: RefCounted = _scripts().GodotRLActions.new(action_space, numbers.size())
	if decoder.error:
		error = decoder.error
		return {}
	return decoder.decode(numbers, null if is_deterministic else random)


func _join() -> void:
	if _task >= 0:
		WorkerThreadPool.wait_for_task_completion(_task)
		_task = -1
		_note(_work)


func _note(work: RefCounted) -> void:
	error = work.error
	duration_usec = work.duration_usec
