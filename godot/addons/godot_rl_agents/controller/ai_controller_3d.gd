class_name AIController3D
extends Node3D
## What plays an agent in 3D: says what it sees, gets and may do, and takes its actions.
##
## Extend it, override the methods below, and give it its player with `init`. Sync finds it by the
## group AGENT and calls it; the game reads `needs_reset` and `heuristic`, and sets `done`.

## The control mode was set.
signal rl_control_changed
## The model was set.
signal rl_model_changed

enum ControlModes { INHERIT_FROM_SYNC, HUMAN, TRAINING, ONNX_INFERENCE, RECORD_EXPERT_DEMOS }

## Who controls this agent; by default whoever Sync says. It may be set while the game runs.
@export var control_mode: AIController3D.ControlModes = ControlModes.INHERIT_FROM_SYNC:
	set(value):
		control_mode = value
		rl_control_changed.emit()
## The `.onnx` file of the policy that plays in ONNX_INFERENCE; empty for Sync's. Set it while
## the game runs, also to the same file, and that is read and plays from then on.
@export_file("*.onnx") var onnx_model_path: String = "":
	set(value):
		onnx_model_path = value
		rl_model_changed.emit()
## After how long an episode is cut off.
@export var reset_after: int = 1000

@export_group("Record expert demos")
## The JSON file into which demonstrations go; agents may share one.
@export var expert_demo_save_path: String = ""
## Removes the last recorded episode.
@export var remove_last_episode_key: InputEvent
## How many ticks an action of a demonstration lasts.
@export var action_repeat: int = 1

@export_group("Several policies")
## The policy that is to learn this agent.
@export var policy_name: String = "shared_policy"

## A model that the game has loaded itself, to play instead of a file: a GodotRLModel or ONNXModel.
var onnx_model: RefCounted:
	set(value):
		onnx_model = value
		rl_model_changed.emit()
## Who acts: "human", "model" or "demo_record".
var heuristic: String = "human"
## Set when the episode has come to its end; what the agent sees then is its last observation.
var done: bool = false:
	set(value):
		if value:
			_rl_episode.end(false)
			if store_obs_done:
				obs_done = get_obs()
		done = value
## Set when the episode is cut off, which says nothing about what would have come.
var truncated: bool = false:
	set(value):
		if value:
			_rl_episode.end(true)
		truncated = value
## Whether `obs_done` is wanted: what the agent sees when its episode ends.
var store_obs_done: bool = false
var obs_done: Dictionary = {}
var reward: float = 0.0
var n_steps: int = 0
## Whether the game is asked to put the agent back to a start, and to call `reset`.
var needs_reset: bool = false
## What this episode's chances should be drawn from; a new one from `reset` on.
var episode_seed: int:
	get:
		return _rl_episode.episode_seed

var _player: Node3D
var _rl_episode: RLAddon.Episode = RLAddon.Episode.new(self)


func _notification(what: int) -> void:
	# Also where a game overrides `_ready`.
	if what == NOTIFICATION_ENTER_TREE:
		add_to_group(&"AGENT")


func _ready():
	pass


func _physics_process(_delta):
	n_steps += 1
	if n_steps > reset_after and not needs_reset:
		needs_reset = true
		_rl_episode.end_by_limit()


## Override: what the agent sees, by key. An image's key contains "2d".
func get_obs() -> Dictionary:
	push_error("%s: get_obs is not overridden" % get_path())
	return {"obs": []}


## Override if it is not simply `reward`: what the agent got since the last time.
func get_reward() -> float:
	return reward


## Override: `{"move": {"size": 2, "action_type": "continuous"}}`, or "discrete" with choices.
func get_action_space() -> Dictionary:
	push_error("%s: get_action_space is not overridden" % get_path())
	return {}


## Override: `action["move"]` is an Array of numbers, or the choice of a discrete action.
func set_action(_action) -> void:
	push_error("%s: set_action is not overridden" % get_path())


## Override to record demonstrations: what the expert does, in the order of the action space.
func get_action() -> Array:
	return []


## Override to restrict discrete actions: by key, for every choice whether it is allowed.
func get_action_mask() -> Dictionary:
	return {}


## Override to tell the trainer more, as plain data.
func get_info() -> Dictionary:
	return {}


## Override where it cannot be told from `get_obs`: images, discrete observations, bounds.
func get_obs_space():
	return RLAddon.Spaces.guess(get_obs())


func init(player: Node3D):
	_player = player


## Begin the next episode.
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


## What the agent saw last in the episode that ended, once.
func get_obs_done() -> Dictionary:
	var seen: Dictionary = obs_done
	obs_done = {}
	return seen


func zero_reward():
	reward = 0.0
