@tool
class_name RewardFunction3D
extends Node3D
## A part of an agent's reward; one of your own extends this and overrides `get_reward`.


## The reward since it was last asked for.
func get_reward() -> float:
	return 0.0


## An episode begins: forget.
func reset() -> void:
	pass
