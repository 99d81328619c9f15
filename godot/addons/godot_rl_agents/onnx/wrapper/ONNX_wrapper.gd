class_name ONNXModel
extends Resource
## The model as `Sync` and the controllers use it; all work is done by GodotRLModel.

## How many numbers the model gives for one agent.
var action_output_size: int = 0
## Whether continuous actions come as means alone, without the logarithms of their spreads.
var action_means_only: bool = false
var action_means_only_set: bool = false
## What runs the model.
var model: GodotRLModel = GodotRLModel.new()


func _init(model_path: String = "", _batch_size: int = 1) -> void:
	if not model_path:
		return
	if not model.load(model_path):
		push_error("ONNX: " + model.error)
		return
	action_output_size = model.output_size()


## A model that is loaded already.
static func of(loaded: GodotRLModel) -> ONNXModel:
	var wrapper: ONNXModel = ONNXModel.new()
	wrapper.model = loaded
	wrapper.action_output_size = loaded.output_size()
	return wrapper


## One agent's outputs, as `{"output": […], "state_outs": […]}`; empty if the model cannot run.
##
## `agent` is the id whose memory is used where the model has one; `state_ins` is then ignored, as
## the model keeps its states itself.
func run_inference(obs: Dictionary, _state_ins: Variant = 1.0, agent: Variant = 0) -> Dictionary:
	var predicted: Dictionary = model.predict(obs, agent)
	if model.error:
		push_error("ONNX: " + model.error)
	var outputs: Dictionary = {}
	for name: String in predicted:
		outputs[name] = Array(predicted[name])
	return outputs


## Find out from the action space whether the model gives means alone.
func set_action_means_only(agent_action_space: Dictionary) -> void:
	action_means_only_set = true
	var wanted: int = 0
	for key: String in agent_action_space:
		wanted += int(agent_action_space[key]["size"])
	action_means_only = wanted == action_output_size
