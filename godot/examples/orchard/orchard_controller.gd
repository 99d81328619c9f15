class_name OrchardController
extends AIController2D
## What the agent of Orchard sees and may do.

const DIRECTIONS: PackedVector2Array = [
	Vector2.ZERO, Vector2.UP, Vector2.DOWN, Vector2.LEFT, Vector2.RIGHT
]

@onready var _eyes: RaycastSensor2D = $"../Eyes"
@onready var _nose: PositionSensor2D = $"../Nose"


## How near thorns are in 16 directions, and where the fruit is.
func get_obs() -> Dictionary:
	return {"obs": _eyes.get_observation() + _nose.get_observation()}


func get_reward() -> float:
	return reward


func get_action_space() -> Dictionary:
	return {"run": {"size": DIRECTIONS.size(), "action_type": "discrete"}}


func set_action(action: Variant) -> void:
	_player.wish = DIRECTIONS[action["run"]]


## The score of the episode that ended last, and whether it was as much as was wanted.
func get_info() -> Dictionary:
	return {"score": _player.score, "success": _player.is_success}
