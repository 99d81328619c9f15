extends AIController2D
## Sees its counter's number, its count, its choice and the low bits of its seed.

const Game := preload("counter_game.gd")

var choice: int = -1
var push: Array = [0.0, 0.0]
var actions: int = 0

var _nan_age: int = Game.option("nan", -1)
var _is_masked: bool = Game.option("masks", 0) == 1
var _is_talkative: bool = Game.option("infos", 0) == 1


func get_obs() -> Dictionary:
	var count: float = NAN if _player.age == _nan_age else float(_player.count)
	return {
		"zeta": [_player.number, count, choice],
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


## Without an action the expert acts.
func set_action(action: Variant = null) -> void:
	if action == null:
		choice = _player.count % 3
		return
	choice = action["choice"]
	push = action["push"]
	actions += 1


func get_action() -> Array:
	return [push[0], push[1], choice]


func get_action_mask() -> Dictionary:
	if not _is_masked:
		return {}
	return {"choice": [1, actions % 2, 0]}


func get_info() -> Dictionary:
	return {"age": _player.age} if _is_talkative else {}


func tell_age() -> int:
	return _player.age


## A number from Godot's own random numbers.
func roll() -> int:
	return randi()


func tell_pace() -> Array:
	return [Engine.time_scale, Engine.physics_ticks_per_second]


func reload() -> void:
	get_tree().reload_current_scene.call_deferred()


func tell_frames() -> int:
	return Engine.get_frames_drawn()
