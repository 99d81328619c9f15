extends AIController3D
## Sees what the camera sees.

var says_right: bool = false

@onready var camera_sensor: RGBCameraSensor3D = $"../RGBCameraSensor3D"


func get_obs() -> Dictionary:
	return {"camera_2d": camera_sensor.get_camera_pixel_encoding()}


func get_obs_space() -> Dictionary:
	return {"camera_2d": {"size": camera_sensor.get_camera_shape(), "space": "box"}}


func get_reward() -> float:
	return reward


func get_action_space() -> Dictionary:
	return {"side": {"size": 2, "action_type": "discrete"}}


func set_action(action) -> void:
	says_right = action["side"] == 1


## Where the ball is: what a picture can be compared with.
func tell_side() -> float:
	return _player.ball.position.x
