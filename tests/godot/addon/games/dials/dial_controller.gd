extends AIController2D
## Sees how long the episode lasts, and the parameters that were read when it began.


func get_obs() -> Dictionary:
	return {"obs": [_player.count, _player.speed, _player.wind, float(_player.map == "large")]}


func get_action_space() -> Dictionary:
	return {"push": {"size": 1, "action_type": "continuous"}}


func set_action(_action: Variant) -> void:
	pass


func tell() -> Array:
	return [_player.speed, _player.wind, _player.map, _player.changes]
