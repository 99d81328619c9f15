class_name TagRays
extends MeshInstance3D
## What an agent's eyes reported last: a fan of rays from where it then was, each to what it hit.

## A ray's share of the angle between two.
const WIDTH: float = 0.7
const NEAR_STRENGTH: float = 0.34
const FAR_STRENGTH: float = 0.16
const SEEN_STRENGTH: float = 0.85

var _rules: TagRules
var _fan: ImmediateMesh = ImmediateMesh.new()
var _drawn: PackedFloat32Array = []


func _init(rules: TagRules) -> void:
	_rules = rules
	mesh = _fan
	material_override = TagLook.glow()
	cast_shadow = GeometryInstance3D.SHADOW_CASTING_SETTING_OFF


## Draw an observation, if it is another than the last.
func show_sight(agent: TagAgent, observation: PackedFloat32Array, own: Color, seen: Color) -> void:
	if observation == _drawn:
		return
	_drawn = observation.duplicate()
	var eye: Vector3 = Vector3(agent.x, agent.y + _rules.eye_height, agent.z)
	var half_width: float = WIDTH * acos(_rules.cone_cos) / maxi(_rules.rays - 1, 1)
	_fan.clear_surfaces()
	_fan.surface_begin(Mesh.PRIMITIVE_TRIANGLES)
	for ray: int in _rules.rays:
		var sight: TagSight = TagSight.of(observation, ray)
		var hits_agent: bool = sight.kind == TagSight.Kind.AGENT
		var near: Color = Color(seen if hits_agent else own, NEAR_STRENGTH)
		var far: Color = Color(near, SEEN_STRENGTH if hits_agent else FAR_STRENGTH)
		var reach: Vector3 = sight.distance * _rules.eye_range * direction(agent, ray)
		_fan.surface_set_color(near)
		_fan.surface_add_vertex(eye)
		for turn: float in [-half_width, half_width]:
			_fan.surface_set_color(far)
			_fan.surface_add_vertex(eye + reach.rotated(Vector3.UP, turn))
	_fan.surface_end()


## Where a ray goes; the first is the leftmost.
func direction(agent: TagAgent, ray: int) -> Vector3:
	var ahead: float = _rules.fan_cos[ray]
	var right: float = _rules.fan_sin[ray]
	return Vector3(
		agent.forward_x * ahead - agent.forward_z * right,
		0.0,
		agent.forward_x * right + agent.forward_z * ahead
	)
