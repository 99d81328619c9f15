@tool
class_name TagContactShadow
extends MeshInstance3D
## The soft dark area on the ground around the footprint of something that stands there.

const SHADER: Shader = preload("res://tag/look/tag_contact.gdshader")
## How far above the ground it lies.
const ABOVE_M: float = 0.012

## Width and depth of what stands there.
@export_custom(PROPERTY_HINT_NONE, "suffix:m") var footprint: Vector2 = Vector2.ONE:
	set(value):
		footprint = value
		_update()
## How far the shadow reaches beyond the footprint.
@export_range(0.0, 5.0, 0.01, "suffix:m") var spread: float = 0.5:
	set(value):
		spread = value
		_update()
## Opacity at the footprint.
@export_range(0.0, 1.0, 0.01) var strength: float = 0.35:
	set(value):
		strength = value
		_update()

var _plane: PlaneMesh = PlaneMesh.new()
var _surface: ShaderMaterial = ShaderMaterial.new()


func _init() -> void:
	_surface.shader = SHADER
	mesh = _plane
	material_override = _surface
	_update()


func _update() -> void:
	_plane.size = footprint + 2.0 * Vector2.ONE * spread
	_surface.set_shader_parameter("half_size", 0.5 * footprint)
	_surface.set_shader_parameter("spread_m", spread)
	_surface.set_shader_parameter("strength", strength)


## Saving the scene must not store what the properties above determine.
func _validate_property(property: Dictionary) -> void:
	if property.name in ["mesh", "material_override"]:
		property.usage &= ~PROPERTY_USAGE_STORAGE
