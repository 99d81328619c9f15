class_name TagController
extends AIController3D
## One agent of a match for a trainer: sees and does what rules.json says.

var game: TagMatch
var index: int
## What it does in the next decision.
var action: PackedFloat32Array = [0.0, 0.0, 0.0]


func _init(of: TagMatch, which: int) -> void:
	game = of
	index = which
	reset_after = 1 << 62
	policy_name = "seeker" if which == game.first_seeker else "hider"


func get_obs() -> Dictionary:
	return {"obs": game.observations[index]}


func get_action_space() -> Dictionary:
	return {
		"move": {"size": 2, "action_type": "continuous"},
		"jump": {"size": 1, "action_type": "continuous"},
	}


func set_action(said: Variant) -> void:
	action[0] = said["move"][0]
	action[1] = said["move"][1]
	action[2] = said["jump"][0]
