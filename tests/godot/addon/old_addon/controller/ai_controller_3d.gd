class_name AIController3D
extends Node3D

enum ControlModes { INHERIT_FROM_SYNC, HUMAN, TRAINING, ONNX_INFERENCE, RECORD_EXPERT_DEMOS }

@export var control_mode: ControlModes = ControlModes.INHERIT_FROM_SYNC
@export var onnx_model_path := ""
@export var reset_after := 1000
@export var policy_name := "shared_policy"

var heuristic := "human"
var done := false
var reward := 0.0
var n_steps := 0
var needs_reset := false
var _player: Node3D


func _ready():
	add_to_group("AGENT")


func init(player: Node3D):
	_player = player


func get_obs() -> Dictionary:
	return {"obs": []}


func get_reward() -> float:
	return 0.0


func get_action_space() -> Dictionary:
	return {}


func set_action(_action) -> void:
	pass


func get_info() -> Dictionary:
	return {}


func get_obs_space():
	return {"obs": {"size": [len(get_obs()["obs"])], "space": "box"}}


func _physics_process(_delta):
	n_steps += 1
	if n_steps > reset_after:
		needs_reset = true


func reset():
	n_steps = 0
	needs_reset = false


func set_heuristic(h):
	heuristic = h


func get_done():
	return done


func set_done_false():
	done = false


func zero_reward():
	reward = 0.0
