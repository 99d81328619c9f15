extends AIController3D
## Sees where it is, and whether the physics space may be queried.


func get_obs() -> Dictionary:
	return {"obs": [_player.position.x, float(RLAddon.Tick.in_scripts)]}


func get_action_space() -> Dictionary:
	return {"wait": {"size": 2, "action_type": "discrete"}}


func set_action(_action: Variant) -> void:
	pass
