@tool
class_name ISensor3D
extends Node3D
## What every sensor has; a sensor of your own extends this and overrides `get_observation`.

## What was seen last.
var _obs: Array = []
var _active: bool = false


## What the sensor sees now, as numbers.
func get_observation() -> Variant:
	return []


func activate() -> void:
	_active = true


func deactivate() -> void:
	_active = false


## An episode begins: forget.
func reset() -> void:
	pass


## For sensors of your own that look when they like.
func _update_observation() -> void:
	pass
