@tool
class_name Sync
extends Node
## Connects the game's agents to a trainer, a policy or a person. Add one to the scene, or make it
## an autoload.
##
## It runs first in every physics tick: an action takes effect in the tick after the observation
## that it answers and lasts `action_repeat` ticks; the game stands still while the trainer decides.
## It starts in the first tick in which there is an agent, so what other nodes set in `_ready`
## counts.
##
## A game may extend it: every member and method that version 0.8 of Godot RL Agents has is here,
## with the same arguments, and is called where that calls it. A Sync that overrides a method which
## handles observations, rewards, actions or messages exchanges JSON with the trainer; all others
## use the faster binary encoding when the trainer offers it.

enum ControlModes { HUMAN, TRAINING, ONNX_INFERENCE }

const MAJOR_VERSION: String = "0"
const MINOR_VERSION: String = "7"
const DEFAULT_PORT: String = "11008"
const DEFAULT_SEED: String = "1"

## What controls the agents whose own control mode is INHERIT_FROM_SYNC. May change at run time.
@export var control_mode: Sync.ControlModes = ControlModes.TRAINING:
	set(value):
		control_mode = value
		if _rl_lockstep:
			_rl_lockstep.groups.request_refresh()
## How long an action lasts. `--action_repeat=` on the command line overrides it.
@export_range(1, 10, 1, "or_greater", "suffix:ticks") var action_repeat: int = 8
## How many times faster than real time the game runs. `--speedup=` overrides it.
@export_range(0.1, 10.0, 0.1, "or_greater") var speed_up: float = 1.0
## The `.onnx` file of the policy that plays in ONNX_INFERENCE; a controller may have its own.
## Setting it at run time, even to the same file, loads the file again. `--onnx_model_path=`
## overrides it and implies ONNX_INFERENCE.
@export_file("*.onnx") var onnx_model_path: String = "":
	set(value):
		onnx_model_path = value
		if _rl_lockstep:
			_rl_lockstep.groups.change_model()
## Whether policies take the most likely action or sample one.
@export var deterministic_inference: bool = true
## Runs policies on worker threads: the game never waits for them, and an action takes effect one
## decision later. For heavy policies.
@export var inference_on_threads: bool = false
## The port the trainer listens on. `--port=` overrides it.
@export_range(1, 65535) var port: int = DEFAULT_PORT.to_int()
## Shows and hides an overlay of observations and actions, in a game with a window; Tab selects the
## next agent. KEY_NONE, 0, disables it.
@export var overlay_key: int = KEY_F3

## The game's parameters that a trainer may set; read with RLParameters. An RLParameterSet.
@export_custom(PROPERTY_HINT_RESOURCE_TYPE, "RLParameterSet") var parameters: Resource = null:
	set(value):
		parameters = value
		update_configuration_warnings()

## All agents, and those that a trainer, a policy or a person controls.
var all_agents: Array = []
var agents_training: Array = []
var agents_inference: Array = []
var agents_heuristic: Array = []
## The name that `all_agents` had in older versions.
var agents: Array:
	get:
		return all_agents
	set(value):
		all_agents = value
var agents_training_policy_names: Array[String] = ["shared_policy"]
## The agent whose demonstrations are recorded; the first one if there are several.
var agent_demo_record: Node
var expert_demo_save_path: String = ""
## The recorded episodes, each as `[observations, actions]`.
var demo_trajectories: Array:
	get:
		return _rl_lockstep.groups.demos.recorded() if _rl_lockstep else []
## The episode that is being recorded.
var current_demo_trajectory: Array:
	get:
		return _rl_lockstep.groups.demos.current() if _rl_lockstep else []
## The models that were loaded, by path.
var onnx_models: Dictionary = {}
var onnx_model: Variant = null
## The connection to the trainer.
var stream: StreamPeerTCP = null
var connected: Variant = false
var should_connect: Variant = true
var message_center: Variant = null
## The command line's `--key=value` arguments, once they are read.
var args: Variant = null
var initialized: Variant = false
## Whether the trainer's last order was an action that has not been answered yet.
var need_to_send_obs: Variant = false
## Whether it was a reset that has not been answered yet.
var just_reset: Variant = false
## How many ticks Sync has run.
var n_action_steps: Variant = 0
var start_time: Variant = 0

var _obs_space_training: Array[Dictionary] = []
var _action_space_training: Array[Dictionary] = []
var _action_space_inference: Array[Dictionary] = []
## Everything above this line is as games know it; the work is done here. Null in the editor.
var _rl_lockstep: RLAddon.Lockstep


func _init() -> void:
	process_mode = Node.PROCESS_MODE_ALWAYS
	process_priority = RLAddon.Lockstep.FIRST
	process_physics_priority = RLAddon.Lockstep.FIRST


# Godot calls this for every class of a script, also where a game's own Sync has one.
func _notification(what: int) -> void:
	if Engine.is_editor_hint():
		return
	if what == NOTIFICATION_ENTER_TREE and not _rl_lockstep:
		_rl_lockstep = RLAddon.Lockstep.new(self)
	if _rl_lockstep:
		_rl_lockstep.notice(what)


func _get_configuration_warnings() -> PackedStringArray:
	return RLAddon.ConfigurationWarnings.of(self)


## Start as soon as there is an agent. A Sync that does not want that overrides it, and calls
## `_initialize` itself.
func _ready():
	if _rl_lockstep:
		_rl_lockstep.is_armed = true


func _physics_process(_delta):
	if _rl_lockstep:
		_rl_lockstep.tick()


func _initialize():
	_rl_lockstep.refresh()
	args = _get_args()
	_rl_lockstep.set_speed_up(_get_speedup())
	_set_heuristic("human", all_agents)
	_initialize_training_agents()
	_initialize_inference_agents()
	_initialize_demo_recording()
	_set_seed()
	_set_action_repeat()
	initialized = true


## Find the agents, and who controls each.
func _get_agents():
	all_agents = get_tree().get_nodes_in_group(RLAddon.AgentGroups.GROUP)
	for agent: Node in all_agents:
		_set_agent_mode(agent)
		match RLAddon.AgentGroups.mode_of(agent, control_mode):
			RLAddon.AgentGroups.Mode.TRAINING:
				agents_training.append(agent)
			RLAddon.AgentGroups.Mode.ONNX:
				agents_inference.append(agent)
			RLAddon.AgentGroups.Mode.DEMOS:
				_rl_lockstep.groups.recorded_agents.append(agent)
			_:
				agents_heuristic.append(agent)
	if _rl_lockstep.groups.recorded_agents:
		agent_demo_record = _rl_lockstep.groups.recorded_agents[0]
	agents_training_policy_names.assign(agents_training.map(RLAddon.Agent.policy_of))


## Give an agent that inherits its control mode the one of Sync.
func _set_agent_mode(agent: Node):
	_rl_lockstep.groups.inherit_mode(agent)


func _set_heuristic(heuristic, nodes: Array):
	for agent: Node in nodes:
		agent.set_heuristic(heuristic)


## Connect to the trainer, unless there is nothing for it to do.
func _initialize_training_agents():
	if agents_training.is_empty():
		return
	_rl_lockstep.announce_training_agents()
	connected = connect_to_server()
	if connected:
		_set_heuristic("model", agents_training)
		_handshake()
		_send_env_info()
	else:
		_rl_lockstep.continue_without_trainer()


func _initialize_inference_agents():
	if agents_inference:
		_rl_lockstep.announce_models()
		_set_heuristic("model", agents_inference)


func _initialize_demo_recording():
	if agent_demo_record:
		expert_demo_save_path = agent_demo_record.expert_demo_save_path
		_set_heuristic("demo_record", _rl_lockstep.groups.recorded_agents)


func connect_to_server():
	stream = RLAddon.Socket.connected_to(_get_port())
	return stream.get_status() == StreamPeerTCP.STATUS_CONNECTED


func disconnect_from_server():
	if stream:
		stream.disconnect_from_host()


## Take the trainer's first message.
func _handshake():
	_rl_lockstep.receive()


## Take the trainer's question what there is to observe and do, and answer it.
func _send_env_info():
	_rl_lockstep.receive()


## Answer the trainer's last order, and carry out the next.
func _training_process():
	_rl_lockstep.train()


## Let policies decide for their agents.
func _inference_process():
	_rl_lockstep.infer()


func _demo_record_process():
	_rl_lockstep.groups.demos.tick()


func _heuristic_process():
	_reset_agents_if_done(agents_heuristic)


## Carry out the trainer's next order; false if none came while a person watches.
func handle_message() -> bool:
	return _rl_lockstep.handle_messages()


## Wait for a message; null if the trainer is gone.
func _get_dict_json_message():
	return _rl_lockstep.trainer.receive_json()


func _send_dict_as_json_message(dict):
	_rl_lockstep.trainer.send_json(dict)


func _call_method_on_agents(method):
	return _rl_lockstep.groups.registry.call_all(method)


func _reset_agents(nodes = all_agents):
	for agent: Node in nodes:
		agent.needs_reset = true


func _reset_agents_if_done(nodes = all_agents):
	for agent: Node in nodes:
		if agent.get_done():
			agent.set_done_false()


func _get_obs_from_agents(nodes: Array = all_agents):
	var obs: Array = []
	for agent: Node in nodes:
		obs.append(agent.get_obs())
	return obs


func _get_reward_from_agents(nodes: Array = agents_training):
	var rewards: Array = []
	for agent: Node in nodes:
		rewards.append(agent.get_reward())
		agent.zero_reward()
	return rewards


func _get_done_from_agents(nodes: Array = agents_training):
	var dones: Array = []
	for agent: Node in nodes:
		dones.append(RLAddon.Agent.take_done(agent))
	return dones


func _get_info_from_agents(nodes: Array = all_agents):
	var infos: Array = []
	for agent: Node in nodes:
		infos.append(agent.get_info() if agent.has_method(&"get_info") else {})
	return infos


func _set_agent_actions(actions, nodes: Array = all_agents):
	for i: int in len(actions):
		nodes[i].set_action(actions[i])


## The actions that a policy's outputs stand for.
func _extract_action_dict(action_array: Array, action_space: Dictionary, _action_means_only: bool):
	var outputs: PackedFloat32Array = PackedFloat32Array(action_array)
	return RLAddon.GodotRLActions.new(action_space, outputs.size()).decode(outputs)


func clamp_array(arr: Array, least: float, most: float):
	return arr.map(func(x: float) -> float: return clampf(x, least, most))


func _get_args():
	return RLAddon.Arguments.read()


func _get_speedup():
	return _rl_argument("speedup", str(speed_up)).to_float()


func _get_port():
	return _rl_argument("port", str(port)).to_int()


func _set_action_repeat():
	action_repeat = maxi(1, _rl_argument("action_repeat", str(action_repeat)).to_int())


## Seed the game's random numbers. Without `--env_seed=`, only a trainer's game is seeded.
func _set_seed():
	var chosen: String = _rl_argument("env_seed", DEFAULT_SEED if connected else "")
	if chosen:
		seed(chosen.to_int())
		_rl_lockstep.groups.reseed(chosen.to_int())


func _rl_argument(key: String, default: String) -> String:
	var known: Dictionary = args if args is Dictionary else _get_args()
	return known.get(key, default)
