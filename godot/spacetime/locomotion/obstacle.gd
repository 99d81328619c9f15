extends StaticBody3D
## A box that stands on the floor; arenas keep them from episode to episode.

@onready var _shape: CollisionShape3D = $CollisionShape3D
@onready var _mesh: MeshInstance3D = $MeshInstance3D


func set_used(is_used: bool) -> void:
	visible = is_used
	if _shape.disabled == is_used:
		_shape.disabled = not is_used


func set_box(place: Vector3, size: Vector3) -> void:
	position = place + Vector3(0.0, 0.5 * size.y, 0.0)
	(_shape.shape as BoxShape3D).size = size
	_mesh.scale = size
