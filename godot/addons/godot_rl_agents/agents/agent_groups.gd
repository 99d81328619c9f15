extends RefCounted
## All agents of the game, grouped by what controls them: a trainer, an ONNX model, a recorded
## expert, or people.

## The controllers' ControlModes.
enum Mode { INHERIT, HUMAN, TRAINING, ONNX, DEMOS }

const GROUP: StringName = &"AGENT"
const HEURISTICS: Dictionary[RLAddon.AgentGroups.Mode, String] = {
	Mode.HUMAN: "human", Mode.TRAINING: "model", Mode.ONNX: "model", Mode.DEMOS: "demo_record"
}
## What Sync's ControlModes are to a controller.
const SYNC_MODES: Array[RLAddon.AgentGroups.Mode] = [Mode.HUMAN, Mode.TRAINING, Mode.ONNX]

## The agents that the trainer controls.
var registry: RLAddon.AgentRegistry = RLAddon.AgentRegistry.new()
## The agents whose experts are recorded.
var demos: RLAddon.Demos = RLAddon.Demos.new()
## The agents that ONNX models control.
var policies: RLAddon.Policies
## The agents that people control.
var human_agents: Array[Node] = []
## The agents that record demonstrations, as Sync found them.
var recorded_agents: Array[Node] = []
## Whether there is a trainer, or one may still be found.
var may_have_trainer: bool = true

var _sync: Sync
## The methods that a game's own Sync overrides.
var _overridden: Dictionary[StringName, bool] = {}
## What controls each known instance.
var _known: Dictionary[int, RLAddon.AgentGroups.Mode] = {}
## The instances whose control mode is the one of Sync.
var _inheriting: Dictionary[int, bool] = {}
var _needs_refresh: bool = true


func _init(sync: Sync, arguments: Dictionary[String, String]) -> void:
	_sync = sync
	_find_overridden()
	var game_seed: int = randi()
	if "env_seed" in arguments:
		game_seed = arguments["env_seed"].to_int()
	registry.game_seed = game_seed
	policies = RLAddon.Policies.new(sync, is_overridden(&"_extract_action_dict"))
	policies.game_seed = game_seed


## Who should control this agent.
static func mode_of(node: Node, sync_mode: Sync.ControlModes) -> RLAddon.AgentGroups.Mode:
	var wish: RLAddon.AgentGroups.Mode = (
		node.control_mode if "control_mode" in node else Mode.INHERIT
	)
	return SYNC_MODES[sync_mode] if wish == Mode.INHERIT else wish


func is_overridden(method: StringName) -> bool:
	return method in _overridden


func reseed(game_seed: int) -> void:
	registry.reseed(game_seed)
	policies.game_seed = game_seed


## Sync's control mode has changed.
func request_refresh() -> void:
	_needs_refresh = true


## Sync's model has changed, or its file is to be loaded again.
func change_model() -> void:
	policies.reopen()
	_needs_refresh = true


## Whether an agent joined or left, or its control mode changed.
func needs_refresh() -> bool:
	var count: int = _sync.get_tree().get_node_count_in_group(GROUP)
	return _needs_refresh or policies.has_lost or count != _known.size()


func clear_lists() -> void:
	_sync.all_agents = []
	_sync.agents_training = []
	_sync.agents_inference = []
	_sync.agents_heuristic = []
	_sync.agent_demo_record = null
	recorded_agents = []


## Give an agent that inherits its control mode the one of Sync.
func inherit_mode(agent: Node) -> void:
	if "control_mode" not in agent:
		return
	if agent.control_mode == Mode.INHERIT:
		_inheriting[agent.get_instance_id()] = true
	if agent.get_instance_id() in _inheriting:
		agent.control_mode = SYNC_MODES[_sync.control_mode]


## Apply the control modes that Sync found.
func place() -> void:
	_needs_refresh = false
	if _sync.agent_demo_record and not recorded_agents:
		recorded_agents = [_sync.agent_demo_record]
	var modes: Dictionary[Node, RLAddon.AgentGroups.Mode] = _modes()
	var before: Dictionary[int, RLAddon.AgentGroups.Mode] = _known
	_known = {}
	for node: Node in modes:
		_known[node.get_instance_id()] = modes[node]
		if before.get(node.get_instance_id()) != modes[node]:
			_assign(node, modes[node])
	_sync.agents_training = _in_mode(modes, Mode.TRAINING)
	_sync.agents_inference = _in_mode(modes, Mode.ONNX)
	_sync.agents_heuristic = _in_mode(modes, Mode.HUMAN)
	human_agents.assign(_sync.agents_heuristic)
	registry.refresh(_sync.agents_training)
	demos.refresh(_in_mode(modes, Mode.DEMOS))
	policies.keep(_sync.agents_inference)


## End the episodes of agents controlled by people where the game asks for it.
func update_human_agents() -> void:
	for node: Node in human_agents:
		if "_rl_episode" in node:
			node.truncated = false
			node._rl_episode.play()


## Whether the game needs one more tick to carry out resets.
func awaits_reset() -> bool:
	var awaits: bool = registry.awaits_reset()
	return policies.awaits_reset() or awaits


## The control mode of each agent: what Sync asks for, where that is possible.
func _modes() -> Dictionary[Node, RLAddon.AgentGroups.Mode]:
	var modes: Dictionary[Node, RLAddon.AgentGroups.Mode] = {}
	for node: Node in _sync.all_agents:
		modes[node] = Mode.HUMAN
	for node: Node in recorded_agents:
		modes[node] = Mode.DEMOS
	for node: Node in _sync.agents_training:
		modes[node] = Mode.TRAINING if may_have_trainer else Mode.HUMAN
	for node: Node in _sync.agents_inference:
		modes[node] = Mode.ONNX if policies.admit(node) else Mode.HUMAN
	return modes


static func _in_mode(
	modes: Dictionary[Node, RLAddon.AgentGroups.Mode], mode: RLAddon.AgentGroups.Mode
) -> Array[Node]:
	var found: Array[Node] = []
	for node: Node in modes:
		if modes[node] == mode:
			found.append(node)
	return found


## An agent is new, or its control mode changed.
func _assign(node: Node, mode: RLAddon.AgentGroups.Mode) -> void:
	_sync._set_heuristic(HEURISTICS[mode], [node])
	if "_rl_episode" in node and mode in [Mode.HUMAN, Mode.DEMOS]:
		node._rl_episode.restart(registry.game_seed)
	if not node.tree_exiting.is_connected(request_refresh):
		node.tree_exiting.connect(request_refresh)
		if node.has_signal(&"rl_model_changed"):
			node.connect(&"rl_control_changed", _on_control_changed.bind(node))
			node.connect(&"rl_model_changed", _on_model_changed.bind(node))


## An overridden method appears more often in the subclass's method list than in Sync's.
func _find_overridden() -> void:
	var counts: Dictionary[StringName, int] = {}
	var sync_script: Script = Sync
	for method: Dictionary in sync_script.get_script_method_list():
		counts[method["name"]] = counts.get(method["name"], 0) - 1
	for method: Dictionary in (_sync.get_script() as Script).get_script_method_list():
		counts[method["name"]] = counts.get(method["name"], 0) + 1
	for method: StringName in counts:
		if counts[method] > 0:
			_overridden[method] = true


func _on_control_changed(node: Node) -> void:
	if node.control_mode != SYNC_MODES[_sync.control_mode]:
		_inheriting.erase(node.get_instance_id())
	_needs_refresh = true


func _on_model_changed(node: Node) -> void:
	policies.reopen(node)
	_needs_refresh = true
