@tool
class_name ApproachNodeReward2D
extends RewardFunction2D
## Rewards coming closer to a node than ever before in the episode.
##
## Add `get_reward()` to the agent's reward once a tick, and call `reset()` when an episode begins.

## The node to approach.
@export var target_node: Node2D:
	set(value):
		target_node = value
		update_configuration_warnings()
## Reward for each unit of distance gained.
@export_range(0.0, 1.0, 0.0001, "or_greater") var reward_scale: float = 1.0

## Infinite before the first call.
var _best_distance: float = INF


func _get_configuration_warnings() -> PackedStringArray:
	return [] if target_node else ["target_node is not set: there is nothing to approach."]


func get_reward() -> float:
	if not is_instance_valid(target_node) or not target_node.is_inside_tree():
		return 0.0
	var distance: float = global_position.distance_to(target_node.global_position)
	var gain: float = 0.0 if is_inf(_best_distance) else maxf(_best_distance - distance, 0.0)
	_best_distance = minf(distance, _best_distance)
	return gain * reward_scale


func reset() -> void:
	_best_distance = INF
