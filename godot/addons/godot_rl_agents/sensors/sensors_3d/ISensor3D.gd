@tool
class_name ISensor3D
extends Node3D
## Base class of sensors. To write your own, extend it and override `get_observation`.

## The last observation.
var _obs: Array = []
var _active: bool = false


## The current observation, as numbers.
func get_observation() -> Variant:
	return []


func activate() -> void:
	_active = true


func deactivate() -> void:
	_active = false


## Call at the start of an episode.
func reset() -> void:
	pass


## For your own sensors that update at a time of their choosing.
func _update_observation() -> void:
	pass
