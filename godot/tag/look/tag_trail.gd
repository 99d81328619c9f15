class_name TagTrail
extends MeshInstance3D
## Where an agent has just been: a ribbon behind it that narrows and fades.

const LASTS_SEC: float = 0.5
const WIDTH: float = 0.62
const STRENGTH: float = 0.42
const STEP_SEC: float = 1.0 / 60.0

## Newest last; the last one is always where the agent is.
var places: PackedVector3Array = []

var _size: float
var _ribbon: ImmediateMesh = ImmediateMesh.new()
var _ages: PackedFloat32Array = []


func _init(size: float) -> void:
	_size = size
	mesh = _ribbon
	material_override = TagLook.glow()
	cast_shadow = GeometryInstance3D.SHADOW_CASTING_SETTING_OFF


func start_over() -> void:
	places.clear()
	_ages.clear()
	_ribbon.clear_surfaces()


## Go on to where the agent's feet are now.
func advance(feet: Vector3, colour: Color, seconds: float) -> void:
	for index: int in _ages.size():
		_ages[index] += seconds
	while not _ages.is_empty() and _ages[0] > LASTS_SEC:
		_ages.remove_at(0)
		places.remove_at(0)
	if _ages.size() > 1 and _ages[_ages.size() - 2] < STEP_SEC:
		_ages.remove_at(_ages.size() - 1)
		places.remove_at(places.size() - 1)
	_ages.append(0.0)
	places.append(feet + Vector3.UP * 0.05 * _size)
	_draw_ribbon(colour)


func _draw_ribbon(colour: Color) -> void:
	_ribbon.clear_surfaces()
	if places.size() < 3:
		return
	_ribbon.surface_begin(Mesh.PRIMITIVE_TRIANGLE_STRIP)
	for index: int in places.size():
		var along: Vector3 = places[mini(index + 1, places.size() - 1)] - places[maxi(index - 1, 0)]
		var across: Vector3 = Vector3(along.z, 0.0, -along.x).normalized()
		var left: float = 1.0 - _ages[index] / LASTS_SEC
		var half: Vector3 = 0.5 * WIDTH * _size * sqrt(left) * across
		for side: float in [-1.0, 1.0]:
			_ribbon.surface_set_color(Color(colour, STRENGTH * left))
			_ribbon.surface_add_vertex(places[index] + side * half)
	_ribbon.surface_end()
