extends AIController3D
## Sees where the boat is, pushes it.


func get_obs() -> Dictionary:
	return {"obs": [_player.position.x / 10.0, _player.speed]}


func get_reward() -> float:
	return reward


func get_action_space() -> Dictionary:
	return {"push": {"size": 1, "action_type": "continuous"}}


func set_action(action) -> void:
	_player.speed = clampf(action["push"][0], -1.0, 1.0)
