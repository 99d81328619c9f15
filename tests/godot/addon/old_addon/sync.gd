extends Node
## Speaks version 0.7 of the protocol in JSON, as addons of that time do: it blocks, it knows no
## joining, and `done` is what the game says. With the names that games override.

enum ControlModes { HUMAN, TRAINING, ONNX_INFERENCE }

@export var control_mode: ControlModes = ControlModes.TRAINING
@export var action_repeat := 8
@export var speed_up := 1.0
@export var onnx_model_path := ""

var stream: StreamPeerTCP = null
var connected = false
var initialized = false
var all_agents: Array = []
var agents_training: Array = []
var args = {}
var ticks = 0
var owes_step = false
var owes_reset = false


func _ready():
	await get_parent().ready
	process_mode = Node.PROCESS_MODE_ALWAYS
	_initialize()


func _initialize():
	_get_agents()
	args = _get_args()
	Engine.physics_ticks_per_second = int(_get_speedup() * 60)
	Engine.time_scale = _get_speedup()
	_set_heuristic("human", all_agents)
	_initialize_training_agents()
	_set_seed()
	action_repeat = int(args.get("action_repeat", str(action_repeat)))
	initialized = true


func _initialize_training_agents():
	if agents_training.is_empty():
		return
	connected = connect_to_server()
	if connected:
		_set_heuristic("model", agents_training)
		_get_dict_json_message()
		_get_dict_json_message()
		_send_env_info()


func _send_env_info():
	_send_dict_as_json_message(
		{
			"type": "env_info",
			"observation_space": agents_training.map(func(agent): return agent.get_obs_space()),
			"action_space": agents_training.map(func(agent): return agent.get_action_space()),
			"n_agents": agents_training.size(),
			"agent_policy_names": agents_training.map(func(agent): return agent.policy_name),
		}
	)


func _physics_process(_delta):
	if not connected:
		return
	ticks += 1
	if ticks % action_repeat:
		return
	get_tree().paused = true
	if owes_reset:
		owes_reset = false
		_send_dict_as_json_message(
			{
				"type": "reset",
				"obs": _get_obs_from_agents(agents_training),
				"info": agents_training.map(func(agent): return agent.get_info()),
			}
		)
	elif owes_step:
		owes_step = false
		_send_dict_as_json_message(
			{
				"type": "step",
				"obs": _get_obs_from_agents(agents_training),
				"reward": agents_training.map(_take_reward),
				"done": agents_training.map(_take_done),
				"info": agents_training.map(func(agent): return agent.get_info()),
			}
		)
	handle_message()


func handle_message() -> bool:
	var message = _get_dict_json_message()
	if message == null or message["type"] == "close":
		get_tree().quit()
		connected = false
	elif message["type"] == "reset":
		for agent in all_agents:
			agent.needs_reset = true
		owes_reset = true
	elif message["type"] == "action":
		for i in agents_training.size():
			agents_training[i].set_action(message["action"][i])
		owes_step = true
	elif message["type"] == "call":
		var method = message["method"]
		_send_dict_as_json_message(
			{"type": "call", "returns": all_agents.map(func(agent): return agent.call(method))}
		)
		return handle_message()
	get_tree().paused = false
	return true


func connect_to_server():
	stream = StreamPeerTCP.new()
	stream.connect_to_host("127.0.0.1", int(args.get("port", "11008")))
	while stream.get_status() == StreamPeerTCP.STATUS_CONNECTING:
		stream.poll()
	return stream.get_status() == StreamPeerTCP.STATUS_CONNECTED


func _get_agents():
	all_agents = get_tree().get_nodes_in_group("AGENT")
	agents_training = all_agents.duplicate()


func _set_heuristic(heuristic, agents: Array):
	for agent in agents:
		agent.set_heuristic(heuristic)


func _get_obs_from_agents(agents: Array = all_agents):
	return agents.map(func(agent): return agent.get_obs())


func _get_args():
	var found = {}
	for word in OS.get_cmdline_args():
		if "=" in word:
			found[word.get_slice("=", 0).lstrip("-")] = word.get_slice("=", 1)
	return found


func _get_speedup():
	return float(args.get("speedup", str(speed_up)))


func _set_seed():
	seed(int(args.get("env_seed", "1")))


func _get_dict_json_message():
	while stream.get_available_bytes() == 0:
		stream.poll()
		if stream.get_status() != StreamPeerTCP.STATUS_CONNECTED:
			return null
		OS.delay_usec(10)
	return JSON.parse_string(stream.get_string())


func _send_dict_as_json_message(dict):
	stream.put_string(JSON.stringify(dict, "", false))


func _take_reward(agent):
	var reward = agent.get_reward()
	agent.zero_reward()
	return reward


func _take_done(agent):
	var done = agent.get_done()
	agent.set_done_false()
	return done
