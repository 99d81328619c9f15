class_name MarbleController
extends AIController3D
## What the agent of Marble sees and may do. It goes with the marble, but does not roll.

const FASTEST: float = 8.0

@onready var _eyes: RayCastSensor3D = $Eyes
@onready var _nose: PositionSensor3D = $Nose


## Be where the marble is.
func follow() -> void:
	position = _player.position


## How near pillars and floor are in 16 directions, above and below; where the goal is, seen from
## the marble; and how fast the marble rolls.
func get_obs() -> Dictionary:
	follow()
	var speed: Vector3 = _player.linear_velocity / FASTEST
	return {"obs": _eyes.get_observation() + _nose.get_observation() + [speed.x, speed.z]}


func get_reward() -> float:
	return reward


func get_action_space() -> Dictionary:
	return {"push": {"size": 2, "action_type": "continuous"}}


func set_action(action: Variant) -> void:
	_player.push = Vector2(action["push"][0], action["push"][1]).limit_length()


## The score of the episode that ended last, and whether it came to the goal.
func get_info() -> Dictionary:
	return {"score": _player.score, "success": _player.score > 0}
