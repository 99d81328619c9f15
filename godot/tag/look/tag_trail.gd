class_name TagTrail
extends MeshInstance3D
## Where an agent has just been: a ribbon behind it that narrows and fades.

const STEP_SEC: float = 1.0 / 60.0

## How long a place stays visible.
@export_range(0.1, 5.0, 0.1, "suffix:s") var length: float = 0.5
## Width behind the agent, as a share of the agent's.
@export_range(0.0, 2.0, 0.01) var width: float = 0.62
## Opacity behind the agent.
@export_range(0.0, 1.0, 0.01) var opacity: float = 0.42

var agent_size: float = 1.0
## Newest last; the last one is always where the agent is.
var places: PackedVector3Array = []

var _ribbon: ImmediateMesh = ImmediateMesh.new()
var _ages: PackedFloat32Array = []


func _ready() -> void:
	mesh = _ribbon


func reset() -> void:
	places.clear()
	_ages.clear()
	_ribbon.clear_surfaces()


## Extend the trail to where the agent's feet are now.
func advance(feet: Vector3, color: Color, seconds: float) -> void:
	for index: int in _ages.size():
		_ages[index] += seconds
	while not _ages.is_empty() and _ages[0] > length:
		_ages.remove_at(0)
		places.remove_at(0)
	if _ages.size() > 1 and _ages[_ages.size() - 2] < STEP_SEC:
		_ages.remove_at(_ages.size() - 1)
		places.remove_at(places.size() - 1)
	_ages.append(0.0)
	places.append(feet + Vector3.UP * 0.05 * agent_size)
	_draw_ribbon(color)


func _draw_ribbon(color: Color) -> void:
	_ribbon.clear_surfaces()
	if places.size() < 3:
		return
	_ribbon.surface_begin(Mesh.PRIMITIVE_TRIANGLE_STRIP)
	for index: int in places.size():
		var along: Vector3 = places[mini(index + 1, places.size() - 1)] - places[maxi(index - 1, 0)]
		var across: Vector3 = Vector3(along.z, 0.0, -along.x).normalized()
		var left: float = 1.0 - _ages[index] / length
		var half: Vector3 = 0.5 * width * agent_size * sqrt(left) * across
		for side: float in [-1.0, 1.0]:
			_ribbon.surface_set_color(Color(color, opacity * left))
			_ribbon.surface_add_vertex(places[index] + side * half)
	_ribbon.surface_end()
