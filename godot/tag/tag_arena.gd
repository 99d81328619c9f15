@tool
class_name TagArena
extends Node3D
## One arena as Godot holds it: solid bodies for floor, walls, boxes and agents, over a match.
##
## The match decides where everything is; bodies follow it, so that Godot's physics can see and
## audit them. In the editor it shows the layout of the game's own files.

const WALL_THICKNESS: float = 0.5
const AGENT_LAYER: int = 2
const SOLID_LAYER: int = 1
const COLOURS: Dictionary[String, Color] = {
	"floor": Color(0.32, 0.36, 0.42),
	"wall": Color(0.52, 0.58, 0.66, 0.35),
	"low": Color(0.86, 0.74, 0.50),
	"tall": Color(0.47, 0.55, 0.72),
	"seeker": Color(0.90, 0.27, 0.22),
	"hider": Color(0.20, 0.55, 0.92),
	"eye": Color(0.97, 0.97, 0.97),
}

## The layout the editor shows: a name in tag/layouts, or a file.
@export var preview_layout: String = "playground":
	set(value):
		preview_layout = value
		if Engine.is_editor_hint() and is_node_ready():
			_show_preview()

## The match that is played here; none in the editor.
var game: TagMatch
## The two agents' bodies.
var bodies: Array[AnimatableBody3D] = []

var _heads: Array[Node3D] = []
var _shown_layout: int = -1
var _shown_seeker: int = -1
var _room: Node3D
var _materials: Dictionary[String, StandardMaterial3D] = {}


func _ready() -> void:
	if Engine.is_editor_hint():
		_show_preview()


## Play a match here.
func hold(new_match: TagMatch) -> void:
	game = new_match
	_add_agents(game.rules)
	follow()


## Bring the bodies to where the match says.
func follow() -> void:
	if game.layout_index != _shown_layout:
		_shown_layout = game.layout_index
		_build_room(game.rules, game.layouts[_shown_layout])
	if game.seeker != _shown_seeker:
		_shown_seeker = game.seeker
		for i: int in 2:
			var cube: MeshInstance3D = _heads[i].get_child(0)
			cube.material_override = _material("seeker" if i == _shown_seeker else "hider")
	for i: int in 2:
		var agent: TagAgent = game.agents[i]
		bodies[i].position = Vector3(agent.x, agent.y, agent.z)
		_heads[i].rotation.y = atan2(agent.forward_x, agent.forward_z)


func _show_preview() -> void:
	var rules: TagRules = TagRules.read()
	var layout: TagLayout = TagLayout.read(preview_layout, rules)
	_build_room(rules, layout)
	update_configuration_warnings()


func _get_configuration_warnings() -> PackedStringArray:
	var rules: TagRules = TagRules.read()
	if rules.error:
		return [rules.error]
	var layout: TagLayout = TagLayout.read(preview_layout, rules)
	return [layout.error] if layout.error else []


func _build_room(rules: TagRules, layout: TagLayout) -> void:
	if _room:
		_room.free()
	_room = Node3D.new()
	_room.name = "Room"
	add_child(_room)
	var width: float = 2.0 * rules.wall_x
	var depth: float = 2.0 * rules.wall_z
	var height: float = rules.wall_height
	var thick: float = WALL_THICKNESS
	_add_solid("Floor", Vector3(0.0, -0.5 * thick, 0.0), Vector3(width, thick, depth), "floor")
	var side: Vector3 = Vector3(thick, height, depth + 2.0 * thick)
	var front: Vector3 = Vector3(width, height, thick)
	var beyond_x: float = rules.wall_x + 0.5 * thick
	var beyond_z: float = rules.wall_z + 0.5 * thick
	_add_solid("West", Vector3(-beyond_x, 0.5 * height, 0.0), side, "wall")
	_add_solid("East", Vector3(beyond_x, 0.5 * height, 0.0), side, "wall")
	_add_solid("North", Vector3(0.0, 0.5 * height, -beyond_z), front, "wall")
	_add_solid("South", Vector3(0.0, 0.5 * height, beyond_z), front, "wall")
	for index: int in layout.count:
		var extent: Vector3 = layout.extent(index)
		var kind: String = "low" if extent.y < 2.0 else "tall"
		_add_solid("Box%d" % index, layout.centre(index), extent, kind)


func _add_solid(label: String, centre: Vector3, extent: Vector3, look: String) -> void:
	var body: StaticBody3D = StaticBody3D.new()
	body.name = label
	body.position = centre
	body.collision_layer = SOLID_LAYER
	body.add_child(_shape(extent))
	body.add_child(_mesh(extent, look))
	_room.add_child(body)


func _add_agents(rules: TagRules) -> void:
	for i: int in 2:
		var body: AnimatableBody3D = AnimatableBody3D.new()
		body.name = "Agent%d" % (i + 1)
		body.sync_to_physics = false
		body.collision_layer = AGENT_LAYER
		body.add_child(_shape(Vector3.ONE * rules.size))
		_heads.append(_head(rules))
		body.add_child(_heads[i])
		add_child(body)
		bodies.append(body)


## A cube with two eyes, which turns although the body does not.
func _head(rules: TagRules) -> Node3D:
	var head: Node3D = Node3D.new()
	head.add_child(_mesh(Vector3.ONE * rules.size, "hider"))
	for side: float in [-0.22, 0.22]:
		var eye: MeshInstance3D = _mesh(Vector3(0.18, 0.18, 0.06) * rules.size, "eye")
		eye.position = Vector3(side, rules.eye_height, rules.half)
		head.add_child(eye)
	return head


func _shape(extent: Vector3) -> CollisionShape3D:
	var shape: CollisionShape3D = CollisionShape3D.new()
	var box: BoxShape3D = BoxShape3D.new()
	box.size = extent
	shape.shape = box
	return shape


func _mesh(extent: Vector3, look: String) -> MeshInstance3D:
	var instance: MeshInstance3D = MeshInstance3D.new()
	var mesh: BoxMesh = BoxMesh.new()
	mesh.size = extent
	instance.mesh = mesh
	instance.material_override = _material(look)
	return instance


func _material(look: String) -> StandardMaterial3D:
	if not _materials.has(look):
		var material: StandardMaterial3D = StandardMaterial3D.new()
		material.albedo_color = COLOURS[look]
		if COLOURS[look].a < 1.0:
			material.transparency = BaseMaterial3D.TRANSPARENCY_ALPHA
		_materials[look] = material
	return _materials[look]
