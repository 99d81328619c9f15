extends RefCounted
## The configuration warnings of Sync in the editor.

const AGENT_SCRIPTS: Array[StringName] = [&"AIController2D", &"AIController3D"]


## The warnings for this Sync.
static func of(sync: Node) -> PackedStringArray:
	var warnings: PackedStringArray = []
	var has_model: bool = sync.onnx_model_path != ""
	if has_model and not ResourceLoader.exists(sync.onnx_model_path):
		if not FileAccess.file_exists(sync.onnx_model_path):
			warnings.append("There is no file %s." % sync.onnx_model_path)
	if sync.control_mode == sync.ControlModes.ONNX_INFERENCE and not has_model:
		warnings.append("ONNX_INFERENCE needs an onnx_model_path.")
	if sync.parameters and sync.parameters.has_method(&"problems"):
		for problem: String in sync.parameters.problems():
			warnings.append("Parameters: %s." % problem)
	var root: Node = sync.get_tree().edited_scene_root if sync.is_inside_tree() else null
	if not root:
		return warnings
	var agents: Array = root.find_children("*", "", true, false).filter(_is_agent)
	if not agents:
		warnings.append("There is no AIController2D or AIController3D in this scene.")
	for agent: Node in agents:
		if (
			agent.get("control_mode") == RLAddon.AgentGroups.Mode.DEMOS
			and not agent.get("expert_demo_save_path")
		):
			warnings.append("%s records demos but has no expert_demo_save_path." % agent.name)
		if agent.get("control_mode") == RLAddon.AgentGroups.Mode.ONNX and not has_model:
			if not agent.get("onnx_model_path"):
				warnings.append("%s is to be played by a model, but names none." % agent.name)
	return warnings


static func _is_agent(node: Node) -> bool:
	var script: Script = node.get_script()
	while script:
		if script.get_global_name() in AGENT_SCRIPTS:
			return true
		script = script.get_base_script()
	return false
