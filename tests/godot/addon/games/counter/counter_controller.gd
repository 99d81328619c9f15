extends AIController2D
## Sees its counter's number, its count, its choice and the low bits of its seed.

const Game := preload("counter_game.gd")

var choice: int = -1
var push: Array = [0.0, 0.0]
var actions: int = 0


func get_obs() -> Dictionary:
	var count: float = _player.count if _player else 0.0
	if _player and _player.age == Game.option("nan", -1):
		count = NAN
	return {
		"zeta": [float(_player.number) if _player else 0.0, count, choice],
		"alpha": [[push[0], push[1]], [episode_seed & 0xFFFF, episode_seed >> 16]],
	}


func get_obs_space() -> Dictionary:
	return {
		"zeta": {"size": [3], "space": "box"},
		"alpha": {"size": [2, 2], "space": "box"},
	}


func get_action_space() -> Dictionary:
	return {
		"push": {"size": 2, "action_type": "continuous"},
		"choice": {"size": 3, "action_type": "discrete"},
	}


func set_action(action: Variant) -> void:
	choice = action["choice"]
	push = action["push"]
	actions += 1


func get_action_mask() -> Dictionary:
	if Game.option("masks", 0) == 0:
		return {}
	return {"choice": [1, actions % 2, 0]}


func get_info() -> Dictionary:
	return {"age": _player.age} if Game.option("infos", 0) == 1 else {}


func tell_age() -> int:
	return _player.age
