@tool
class_name RewardFunction2D
extends Node2D
## Base class of reward terms. To write your own, extend it and override `get_reward`.


## The reward since the last call.
func get_reward() -> float:
	return 0.0


## Call at the start of an episode.
func reset() -> void:
	pass
