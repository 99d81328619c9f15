# meta-description: An agent: what it sees, what it gets, what it may do
extends _BASE_

## What the player is to do, read by its script.
var move: Vector2 = Vector2.ZERO


func get_obs() -> Dictionary:
	return {"obs": [_player.position.x, _player.position.z]}


func get_reward() -> float:
	return reward


func get_action_space() -> Dictionary:
	return {"move": {"size": 2, "action_type": "continuous"}}


func set_action(action) -> void:
	move = Vector2(action["move"][0], action["move"][1])
