class_name AIController3D
extends Node3D
## Connects an agent of a 3D game to Sync: its observations, rewards, action space and actions.
##
## Extend it, override the methods below and pass the player to `init`. Sync finds it through the
## group AGENT. The game reads `needs_reset` and `heuristic`, and sets `done`.

## Emitted when the control mode is set.
signal rl_control_changed
## Emitted when the model is set.
signal rl_model_changed

enum ControlModes { INHERIT_FROM_SYNC, HUMAN, TRAINING, ONNX_INFERENCE, RECORD_EXPERT_DEMOS }

## What controls this agent; by default what Sync says. May change at run time.
@export var control_mode: AIController3D.ControlModes = ControlModes.INHERIT_FROM_SYNC:
	set(value):
		control_mode = value
		rl_control_changed.emit()
## The `.onnx` file of the policy that plays in ONNX_INFERENCE; empty uses Sync's. Setting it at
## run time, even to the same file, loads the file again.
@export_file("*.onnx") var onnx_model_path: String = "":
	set(value):
		onnx_model_path = value
		rl_model_changed.emit()
## The number of physics ticks after which an episode is truncated.
@export var reset_after: int = 1000

@export_group("Record expert demos")
## The JSON file for recorded demonstrations; agents may share one.
@export var expert_demo_save_path: String = ""
## Removes the last recorded episode.
@export var remove_last_episode_key: InputEvent
## The number of ticks that one action of a demonstration lasts.
@export var action_repeat: int = 1

@export_group("Several policies")
## The name of the policy that controls this agent.
@export var policy_name: String = "shared_policy"

## A model that the game has loaded itself, used instead of a file: a GodotRLModel or ONNXModel.
var onnx_model: RefCounted:
	set(value):
		onnx_model = value
		rl_model_changed.emit()
## What chooses the actions: "human", "model" or "demo_record".
var heuristic: String = "human"
## Set to true when the episode ends; the observation at that moment is its last one.
var done: bool = false:
	set(value):
		if value:
			_rl_episode.end(false)
			if store_obs_done:
				obs_done = get_obs()
		done = value
## Set to true when the episode is cut off, for example by a time limit, rather than ended.
var truncated: bool = false:
	set(value):
		if value:
			_rl_episode.end(true)
		truncated = value
## Whether to store the last observation of an episode in `obs_done`.
var store_obs_done: bool = false
var obs_done: Dictionary = {}
var reward: float = 0.0
var n_steps: int = 0
## Whether the game should move the agent to a start position and call `reset`.
var needs_reset: bool = false
## The random seed of this episode; `reset` starts the next one.
var episode_seed: int:
	get:
		return _rl_episode.episode_seed

var _player: Node3D
var _rl_episode: RLAddon.Episode = RLAddon.Episode.new(self)


func _notification(what: int) -> void:
	# Not in `_ready`, which a game may override without calling it.
	if what == NOTIFICATION_ENTER_TREE:
		add_to_group(&"AGENT")


func _ready():
	pass


func _physics_process(_delta):
	n_steps += 1
	if n_steps > reset_after and not needs_reset:
		needs_reset = true
		_rl_episode.end_by_limit()


## Override: the observation, by key. The key of an image contains "2d".
func get_obs() -> Dictionary:
	push_error("%s: override get_obs()" % get_path())
	return {"obs": []}


## Override if it is more than `reward`: the reward since the last call.
func get_reward() -> float:
	return reward


## Override: `{"move": {"size": 2, "action_type": "continuous"}}`; for "discrete", the size is the
## number of choices.
func get_action_space() -> Dictionary:
	push_error("%s: override get_action_space()" % get_path())
	return {}


## Override: `action["move"]` is an Array of floats, or the index of a discrete choice.
func set_action(_action) -> void:
	push_error("%s: override set_action()" % get_path())


## Override to record demonstrations: the expert's action, in the order of the action space.
func get_action() -> Array:
	return []


## Override to mask discrete actions: by key, for each choice whether it is allowed.
func get_action_mask() -> Dictionary:
	return {}


## Override to send extra data to the trainer, as plain values.
func get_info() -> Dictionary:
	return {}


## Override where it cannot be derived from `get_obs`: images, discrete observations, bounds.
func get_obs_space():
	return RLAddon.Spaces.guess(get_obs())


func init(player: Node3D):
	_player = player


## Start the next episode.
func reset():
	n_steps = 0
	needs_reset = false
	_rl_episode.note_reset()


func reset_if_done():
	if done:
		reset()


func set_heuristic(by):
	heuristic = by


func get_done():
	return done


func set_done_false():
	done = false


func get_truncated():
	return truncated


func set_truncated_false():
	truncated = false


## The last observation of the episode that ended; cleared by this call.
func get_obs_done() -> Dictionary:
	var seen: Dictionary = obs_done
	obs_done = {}
	return seen


func zero_reward():
	reward = 0.0
