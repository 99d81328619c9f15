@tool
class_name Sync
extends Node
## Lets a trainer, an expert or a policy play a game's agents; one in the scene, or an autoload.
##
## It is the first to act in every tick: an action is in force from the first tick after what it
## answers, for `action_repeat` ticks, and nothing moves while the trainer thinks. It begins with
## the first tick in which there is an agent, so whatever other nodes set in `_ready` counts.

enum ControlModes { HUMAN, TRAINING, ONNX_INFERENCE }

const Advice := preload("advice.gd")
const Arguments := preload("arguments.gd")
const Crew := preload("agents/crew.gd")
const Episode := preload("controller/episode.gd")
const Overlay := preload("overlay/overlay.gd")
const Pace := preload("pace.gd")
const TickEnd := preload("tick_end.gd")
const Trainer := preload("wire/trainer.gd")
const FIRST: int = -(1 << 30)
const USUAL_MODES: Array[int] = [Crew.Mode.HUMAN, Crew.Mode.TRAINING, Crew.Mode.ONNX]
## Where somebody watches, no frame waits longer for the trainer than this.
const WATCHED_PATIENCE_USEC: int = 8000
## After so long without an agent people are told.
const LONELY_TICKS: int = 300

## Who controls the agents that do not say it themselves.
## It may be set while the game runs.
@export var control_mode: ControlModes = ControlModes.TRAINING:
	set(value):
		control_mode = value
		if _crew:
			_crew.change_mode(USUAL_MODES[control_mode])
## How long an action lasts; `--action_repeat=` on the command line is stronger.
@export_range(1, 10, 1, "or_greater", "suffix:ticks") var action_repeat: int = 8
## How many times faster than real time the game goes; `--speedup=` is stronger.
@export_range(0.1, 10.0, 0.1, "or_greater") var speed_up: float = 1.0
## The `.onnx` file of the policy that plays in ONNX_INFERENCE; a controller may name its own.
## Set it while the game runs, also to the same file, and that is read and plays from then on.
## `--onnx_model_path=` on the command line is stronger, and means ONNX_INFERENCE.
@export_file("*.onnx") var onnx_model_path: String = "":
	set(value):
		onnx_model_path = value
		if _crew:
			_crew.change_model(onnx_model_path)
## Whether policies do what they think best, or draw from what they think good.
@export var deterministic_inference: bool = true
## Whether policies think on worker threads, as heavy ones should: the game never waits for them,
## and what they decide is done at the next decision.
@export var inference_on_threads: bool = false
## Where the trainer listens; `--port=` is stronger.
@export_range(1, 65535) var port: int = 11008
## Shows and hides what the agents see and do, in a game with a window; Tab goes to the next agent.
## KEY_NONE for never.
@export var overlay_key: Key = KEY_F3

var _arguments: Dictionary[String, String] = {}
var _crew: Crew
var _trainer: Trainer
var _pace: Pace
## Null until it is asked for.
var _overlay: Overlay
## Whether pictures are drawn for agents alone: `--unwatched=1`, and not headless.
var _draws_for_agents: bool = false
var _is_watched: bool = DisplayServer.get_name() != "headless"
var _is_started: bool = false
## Whether an order is awaited, and nothing may move.
var _is_waiting: bool = false
var _has_paused: bool = false
## How many ticks the game still plays before the trainer is answered.
var _ticks_left: int = 0
var _is_reset: bool = false
var _are_rewards_taken: bool = false


func _init() -> void:
	process_mode = Node.PROCESS_MODE_ALWAYS
	process_priority = FIRST
	process_physics_priority = FIRST


func _enter_tree() -> void:
	if Engine.is_editor_hint():
		return
	_arguments = Arguments.read()
	if _is_watched and _arguments.get("unwatched") == "1":
		_is_watched = false
		_draws_for_agents = true
	if "env_seed" in _arguments:
		seed(_arguments["env_seed"].to_int())


func _ready() -> void:
	if Engine.is_editor_hint() or _is_second():
		set_physics_process(false)
		set_process(false)
		set_process_input(false)
		return
	add_child(TickEnd.new(), false, Node.INTERNAL_MODE_BACK)


func _exit_tree() -> void:
	if Engine.is_editor_hint():
		return
	_pause(false)
	RLTick.in_scripts = true
	if _draws_for_agents:
		RenderingServer.render_loop_enabled = true
	if _trainer:
		_trainer.close()
		_trainer = null


func _process(delta: float) -> void:
	RLTick.in_scripts = true
	if _pace and not _pace.is_set:
		_pace.look(delta)


func _physics_process(_delta: float) -> void:
	RLTick.in_scripts = true
	if _is_waiting:
		_listen()
		return
	Episode.pay()
	Episode.tick += 1
	if not _is_started and not _start():
		return
	_crew.muster()
	if _crew.wants_trainer and not _trainer:
		_connect()
	_crew.tend(Episode.tick % action_repeat == 0)
	if _trainer:
		_train()
	elif not get_tree().paused:
		_crew.policies.tick(action_repeat, deterministic_inference, inference_on_threads)


func _input(event: InputEvent) -> void:
	if _crew:
		_crew.demos.take_input(event)
		if overlay_key and event is InputEventKey and event.keycode == overlay_key:
			if _is_watched and event.is_pressed() and not event.is_echo():
				_toggle_overlay()


func _toggle_overlay() -> void:
	get_viewport().set_input_as_handled()
	if _overlay:
		_overlay.toggle()
	else:
		_overlay = Overlay.new(_crew, overlay_key)
		add_child(_overlay, false, Node.INTERNAL_MODE_BACK)


func _get_configuration_warnings() -> PackedStringArray:
	return Advice.of(self)


## Whether there is another Sync that does the work, such as the autoload.
func _is_second() -> bool:
	if get_tree().has_group(&"RL_SYNC"):
		push_warning("Godot RL Agents: %s does nothing, for there is another Sync" % get_path())
		return true
	add_to_group(&"RL_SYNC")
	return false


func _start() -> bool:
	if get_tree().get_node_count_in_group(Crew.GROUP) == 0:
		if Episode.tick == LONELY_TICKS:
			push_warning("Godot RL Agents: no node is in the group AGENT; add an AIController")
		return false
	_is_started = true
	action_repeat = maxi(1, int(_arguments.get("action_repeat", str(action_repeat))))
	port = int(_arguments.get("port", str(port)))
	_pace = Pace.new(float(_arguments.get("speedup", str(speed_up))))
	var game_seed: int = int(_arguments["env_seed"]) if "env_seed" in _arguments else randi()
	if "onnx_model_path" in _arguments:
		onnx_model_path = Arguments.path(_arguments["onnx_model_path"])
		control_mode = ControlModes.ONNX_INFERENCE
	_crew = Crew.new(get_tree(), USUAL_MODES[control_mode], onnx_model_path, game_seed)
	return true


func _connect() -> void:
	var trainer: Trainer = Trainer.new(_crew.roster)
	if trainer.open(port):
		_trainer = trainer
		_is_waiting = true
		return
	if "port" in _arguments and not _is_watched:
		_end("%s; the game ends" % trainer.closed, 1)
		return
	print("Godot RL Agents: %s; people control the agents" % trainer.closed)
	_crew.dismiss_trainer()


func _train() -> void:
	if _ticks_left > 0:
		_ticks_left -= 1
	if _ticks_left == 0 and not _is_waiting:
		_answer()
	if _is_waiting:
		_listen()
	if _draws_for_agents:
		# The frame that the next observation shows is drawn, and no other.
		RenderingServer.render_loop_enabled = _ticks_left <= 1


## Observe and tell, unless the game needs a tick more.
func _answer() -> void:
	var roster: RefCounted = _crew.roster
	if _is_reset:
		roster.start_over()
	elif roster.is_open:
		if not _are_rewards_taken:
			if _crew.awaits_reset():
				_ticks_left = 1
				return
			roster.take_rewards()
			_are_rewards_taken = true
		if _crew.awaits_reset():
			_ticks_left = 1
			return
	_are_rewards_taken = false
	_is_reset = false
	_trainer.answer()
	_is_waiting = true


## Carry out the trainer's next order.
func _listen() -> void:
	var order: Trainer.Order = _trainer.next_order(
		WATCHED_PATIENCE_USEC if _is_watched else Trainer.FOREVER
	)
	_is_waiting = order == Trainer.Order.NONE
	_pause(_is_waiting)
	match order:
		Trainer.Order.ACT:
			_ticks_left = action_repeat
			_crew.policies.decide(deterministic_inference, inference_on_threads)
		Trainer.Order.RESET:
			_ticks_left = 1
			_is_reset = true
		Trainer.Order.CLOSE:
			_end("", 0)
		Trainer.Order.LOST:
			_end("%s; the game ends" % _trainer.closed, 1)


func _pause(is_paused: bool) -> void:
	if is_paused != _has_paused:
		_has_paused = is_paused
		get_tree().paused = is_paused


func _end(reason: String, status: int) -> void:
	if reason:
		printerr("Godot RL Agents: " + reason)
	if _trainer:
		_trainer.close()
		_trainer = null
	set_physics_process(false)
	get_tree().quit(status)
