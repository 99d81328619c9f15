extends AIController2D
# Without types, and without super().


func get_obs():
	return {"obs": [_player.place * 0.1, _player.stall * 0.1]}


func get_reward():
	return reward


func get_action_space():
	return {"walk": {"size": 1, "action_type": "continuous"}}


func set_action(action):
	_player.speed = clamp(action["walk"][0], -1.0, 1.0)


func reset():
	n_steps = 0
	needs_reset = false
