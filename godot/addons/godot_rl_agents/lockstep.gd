extends RefCounted
## What Sync does in every tick: exchange observations and actions with the trainer, and run
## policies, recorders and human control.

const FIRST: int = -(1 << 30)
## In a game with a window no frame waits longer for the trainer than this.
const WATCHED_PATIENCE_USEC: int = 8000
## Warn after this many ticks without an agent.
const LONELY_TICKS: int = 300
## A Sync that overrides one of these gets whole messages, in JSON.
const NEEDS_JSON: Array[StringName] = [
	&"_training_process",
	&"handle_message",
	&"_handshake",
	&"_send_env_info",
	&"_get_dict_json_message",
	&"_send_dict_as_json_message",
	&"_get_obs_from_agents",
	&"_get_reward_from_agents",
	&"_get_done_from_agents",
	&"_get_info_from_agents",
	&"_set_agent_actions",
]

static var _is_announced: bool = false

## Whether to start automatically.
var is_armed: bool = false
var groups: RLAddon.AgentGroups
## Null until Sync has connected.
var trainer: RLAddon.Trainer:
	get:
		if not trainer and _sync.stream:
			trainer = RLAddon.Trainer.new(_sync, groups.registry)
			trainer.allows_binary = not NEEDS_JSON.any(groups.is_overridden)
			trainer.allows_parameters = not groups.is_overridden(&"handle_message")
		return trainer

var _sync: Sync
var _speed_up_probe: RLAddon.SpeedUp
## Created on first use.
var _overlay: RLAddon.Overlay
## Whether pictures are drawn for agents alone: `--unwatched=1`, and not headless.
var _draws_for_agents: bool = false
var _is_watched: bool = DisplayServer.get_name() != "headless"
var _is_second: bool = false
var _has_begun: bool = false
var _has_taken_model: bool = false
## Whether the game is paused until the trainer's next command.
var _is_waiting: bool = false
var _has_paused: bool = false
## Ticks left before the reply to the trainer.
var _ticks_left: int = 0
var _are_rewards_taken: bool = false


func _init(sync: Sync) -> void:
	_sync = sync
	var typed: Dictionary[String, String] = RLAddon.Arguments.read()
	groups = RLAddon.AgentGroups.new(sync, typed)
	_draws_for_agents = _is_watched and typed.get("unwatched") == "1"
	_is_watched = _is_watched and not _draws_for_agents


## Called for every notification of Sync.
func notice(what: int) -> void:
	match what:
		Node.NOTIFICATION_ENTER_TREE:
			var typed: Dictionary[String, String] = RLAddon.Arguments.read()
			if "env_seed" in typed:
				seed(typed["env_seed"].to_int())
			RLAddon.ParameterStore.declare(_sync.parameters)
		Node.NOTIFICATION_READY:
			_sync.start_time = Time.get_ticks_msec()
			_is_second = _sync.get_tree().has_group(&"RL_SYNC")
			if _is_second:
				push_warning(
					"Godot RL Agents: %s is ignored; there is another Sync" % _sync.get_path()
				)
				return
			_sync.add_to_group(&"RL_SYNC")
			_sync.add_child(RLAddon.Tick.new(self), false, Node.INTERNAL_MODE_BACK)
			_sync.set_process_internal(true)
		Node.NOTIFICATION_INTERNAL_PROCESS:
			RLAddon.Tick.in_scripts = true
			if _speed_up_probe and not _speed_up_probe.is_set:
				_speed_up_probe.look(_sync.get_process_delta_time())
		Node.NOTIFICATION_EXIT_TREE:
			_pause(false)
			RLAddon.Tick.in_scripts = true
			if _draws_for_agents:
				RenderingServer.render_loop_enabled = true
			_disconnect()


func tick() -> void:
	RLAddon.Tick.in_scripts = true
	if _is_second:
		return
	if _is_waiting:
		_listen()
		return
	if not _is_announced:
		_announce()
	RLAddon.Episode.pay()
	RLAddon.Episode.tick += 1
	if not _has_begun and not _sync.initialized and not _begin():
		return
	if groups.needs_refresh():
		refresh()
		if _sync.agents_training and not _sync.connected and groups.may_have_trainer:
			_sync._initialize_training_agents()
	_sync._demo_record_process()
	_sync.n_action_steps += 1
	if RLAddon.Episode.tick % _sync.action_repeat == 0:
		_sync._heuristic_process()
		groups.update_human_agents()
	if _sync.connected:
		_ticks_left = maxi(_ticks_left - 1, 0)
		if _ticks_left == 0:
			_sync._training_process()
			_plan_answer()
		if _draws_for_agents:
			# The frame that the next observation shows is drawn, and no other.
			RenderingServer.render_loop_enabled = _ticks_left <= 1
	elif not _sync.get_tree().paused and groups.policies.is_due(_sync.action_repeat):
		_sync._inference_process()


## Find the agents and apply their control modes.
func refresh() -> void:
	_take_model_argument()
	groups.clear_lists()
	_sync._get_agents()
	groups.place()


## Prepare the spaces of the agents in training.
func announce_training_agents() -> void:
	groups.registry.refresh(_sync.agents_training)
	_sync._obs_space_training.assign(groups.registry.joined.map(_observation_space))
	_sync._action_space_training.assign(groups.registry.joined.map(_action_space))


func announce_models() -> void:
	_sync._action_space_inference.assign(
		_sync.agents_inference.map(func(agent: Node) -> Dictionary: return agent.get_action_space())
	)
	_sync.onnx_models.merge(groups.policies.models())


## No trainer listens: quit if one started the game, else let people play.
func continue_without_trainer() -> void:
	var reason: String = "nothing listens on 127.0.0.1:%d" % _sync._get_port()
	_sync.stream = null
	if _sync._rl_argument("port", "") and not _is_watched:
		_end("%s; quitting" % reason, 1)
		return
	print("Godot RL Agents: %s; people control the agents" % reason)
	groups.may_have_trainer = false
	refresh()


func set_speed_up(speed_up: float) -> void:
	_speed_up_probe = RLAddon.SpeedUp.new(speed_up)


## Reply to the last command and execute the next.
func train() -> void:
	if (_sync.just_reset or _sync.need_to_send_obs) and not _answer():
		_ticks_left = 1
	else:
		_listen()


## Let policies decide.
func infer() -> void:
	groups.policies.decide()


## Handle messages until one is a command and execute it; false if it timed out.
func handle_messages() -> bool:
	var start: int = Time.get_ticks_usec()
	while trainer:
		var left: int = _patience_usec() - (Time.get_ticks_usec() - start)
		var order: RLAddon.Trainer.Command = trainer.receive(maxi(left, 0))
		if order == RLAddon.Trainer.Command.NONE:
			return false
		if order != RLAddon.Trainer.Command.HANDLED:
			_execute(order)
			return true
	return false


## Receive one message.
func receive() -> void:
	if trainer:
		_execute(trainer.receive(_patience_usec()))


func take_input(event: InputEvent) -> void:
	groups.demos.take_input(event)
	if _sync.overlay_key and event is InputEventKey and event.keycode == _sync.overlay_key:
		if _is_watched and event.is_pressed() and not event.is_echo():
			_toggle_overlay()


## Print once per game that Sync runs.
func _announce() -> void:
	_is_announced = true
	_take_model_argument()
	var mode: String = Sync.ControlModes.find_key(_sync.control_mode).to_lower()
	print("[Godot RL Agents] Sync node initialized: %s mode, port %d" % [mode, _sync._get_port()])


func _begin() -> bool:
	if not is_armed:
		return false
	if _sync.get_tree().get_node_count_in_group(RLAddon.AgentGroups.GROUP) == 0:
		if RLAddon.Episode.tick == LONELY_TICKS:
			push_warning("Godot RL Agents: no node is in the group AGENT; add an AIController")
		return false
	_has_begun = true
	_sync._initialize()
	return true


## `--onnx_model_path=` overrides what the scene says, once.
func _take_model_argument() -> void:
	var typed: Dictionary[String, String] = RLAddon.Arguments.read()
	if "onnx_model_path" in typed and not _has_taken_model:
		_has_taken_model = true
		_sync.onnx_model_path = RLAddon.Arguments.path(typed["onnx_model_path"])
		_sync.control_mode = Sync.ControlModes.ONNX_INFERENCE


func _toggle_overlay() -> void:
	_sync.get_viewport().set_input_as_handled()
	if _overlay:
		_overlay.toggle()
	else:
		_overlay = RLAddon.Overlay.new(groups, _sync.overlay_key)
		_sync.add_child(_overlay, false, Node.INTERNAL_MODE_BACK)


## Observe and reply, unless the game needs one more tick for a reset.
func _answer() -> bool:
	if _sync.just_reset:
		groups.registry.start_over()
	elif groups.registry.is_open:
		if not _are_rewards_taken:
			if groups.awaits_reset():
				return false
			groups.registry.take_rewards()
			_are_rewards_taken = true
		if groups.awaits_reset():
			return false
	_are_rewards_taken = false
	var is_reset: bool = _sync.just_reset
	_sync.just_reset = false
	_sync.need_to_send_obs = false
	trainer.answer(is_reset)
	return true


func _listen() -> void:
	_is_waiting = not _sync.handle_message()
	_pause(_is_waiting)
	_plan_answer()


## After a command executed by a game's own code, schedule the reply.
func _plan_answer() -> void:
	if _ticks_left == 0 and not _is_waiting:
		_ticks_left = 1 if _sync.just_reset else _sync.action_repeat


func _execute(order: RLAddon.Trainer.Command) -> void:
	match order:
		RLAddon.Trainer.Command.ACT:
			_sync.need_to_send_obs = true
			_ticks_left = _sync.action_repeat
			_release()
			if groups.policies.players():
				_sync._inference_process()
		RLAddon.Trainer.Command.RESET:
			_sync.just_reset = true
			_ticks_left = 1
			_release()
		RLAddon.Trainer.Command.CLOSE:
			_end("", 0)
		RLAddon.Trainer.Command.LOST:
			_end("%s; quitting" % trainer.closed, 1)


func _patience_usec() -> int:
	# A game's own code does not expect to return without a command.
	var blocks: bool = not _is_watched or NEEDS_JSON.any(groups.is_overridden)
	return RLAddon.Trainer.FOREVER if blocks else WATCHED_PATIENCE_USEC


func _pause(is_paused: bool) -> void:
	if is_paused != _has_paused:
		_has_paused = is_paused
		_sync.get_tree().paused = is_paused


## Resume the game; an overridden `_training_process` may have paused it.
func _release() -> void:
	_pause(false)
	if groups.is_overridden(&"_training_process"):
		_sync.get_tree().paused = false


func _end(reason: String, status: int) -> void:
	if reason:
		printerr("Godot RL Agents: " + reason)
	_disconnect()
	_sync.set_physics_process(false)
	_sync.get_tree().quit(status)


func _disconnect() -> void:
	if trainer:
		trainer.close()
	_sync.connected = false
	_sync.stream = null
	trainer = null


static func _observation_space(agent: RLAddon.Agent) -> Dictionary:
	return agent.spaces.observation_space


static func _action_space(agent: RLAddon.Agent) -> Dictionary:
	return agent.spaces.action_space
