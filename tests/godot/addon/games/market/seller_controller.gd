extends AIController2D
## With types that are stricter than those of the addon.


func _ready() -> void:
	super._ready()
	reset()


func get_obs() -> Dictionary:
	return {"obs": [_player.place * 0.1, _player.stall * 0.1]}


func get_reward() -> float:
	return reward


func get_action_space() -> Dictionary:
	return {"walk": {"size": 1, "action_type": "continuous"}}


func set_action(action: Dictionary) -> void:
	_player.speed = action["walk"][0]


func reset() -> void:
	super.reset()
