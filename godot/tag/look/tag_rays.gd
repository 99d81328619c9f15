class_name TagRays
extends MeshInstance3D
## The rays of an agent's last observation: a fan from where it then was, each ray to what it hit.

## Width of a ray, as a share of the angle between two.
@export_range(0.0, 1.0, 0.01) var width: float = 0.7
## Opacity at the agent.
@export_range(0.0, 1.0, 0.01) var near_opacity: float = 0.34
## Opacity at the end of a ray.
@export_range(0.0, 1.0, 0.01) var far_opacity: float = 0.16
## Opacity at the end of a ray that hits the opponent.
@export_range(0.0, 1.0, 0.01) var hit_opacity: float = 0.85

var rules: TagRules

var _fan: ImmediateMesh = ImmediateMesh.new()
var _drawn: PackedFloat32Array = []


func _ready() -> void:
	mesh = _fan


## Draw an observation, unless it is the one drawn last.
func show_observation(
	agent: TagAgent, observation: PackedFloat32Array, own: Color, other: Color
) -> void:
	if observation == _drawn:
		return
	_drawn = observation.duplicate()
	var eye: Vector3 = Vector3(agent.x, agent.y + rules.eye_height, agent.z)
	var half_width: float = width * acos(rules.cone_cos) / maxi(rules.rays - 1, 1)
	_fan.clear_surfaces()
	_fan.surface_begin(Mesh.PRIMITIVE_TRIANGLES)
	for ray: int in rules.rays:
		var sight: TagSight = TagSight.of(observation, ray)
		var hits_agent: bool = sight.kind == TagSight.Kind.AGENT
		var near: Color = Color(other if hits_agent else own, near_opacity)
		var far: Color = Color(near, hit_opacity if hits_agent else far_opacity)
		var reach: Vector3 = sight.distance * rules.eye_range * direction(agent, ray)
		_fan.surface_set_color(near)
		_fan.surface_add_vertex(eye)
		for turn: float in [-half_width, half_width]:
			_fan.surface_set_color(far)
			_fan.surface_add_vertex(eye + reach.rotated(Vector3.UP, turn))
	_fan.surface_end()


## The direction of a ray; the first is the leftmost.
func direction(agent: TagAgent, ray: int) -> Vector3:
	var ahead: float = rules.fan_cos[ray]
	var right: float = rules.fan_sin[ray]
	return Vector3(
		agent.forward_x * ahead - agent.forward_z * right,
		0.0,
		agent.forward_x * right + agent.forward_z * ahead
	)
