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

## The layout the editor shows: a name in tag/layouts, or a file.
@export var preview_layout: String = "colonnade":
	set(value):
		preview_layout = value
		if Engine.is_editor_hint() and is_node_ready():
			_show_preview()

## The match that is played here; none in the editor.
var game: TagMatch
## The two agents' bodies.
var bodies: Array[AnimatableBody3D] = []
## What can be seen of it; null where nothing is drawn.
var look: TagArenaLook

var _shown_layout: TagLayout
var _room: Node3D
var _preview: TagRoomLook


func _ready() -> void:
	if Engine.is_editor_hint():
		_show_preview()


## Play a match here.
func hold(new_match: TagMatch) -> void:
	game = new_match
	_clear_away()
	_add_agents(game.rules)
	if TagLook.wanted:
		look = TagArenaLook.new(game, bodies)
		add_child(look)
	follow()


## Bring the bodies to where the match says.
func follow() -> void:
	if game.layouts[game.layout_index] != _shown_layout:
		_shown_layout = game.layouts[game.layout_index]
		_build_room(game.rules, _shown_layout)
	for i: int in 2:
		var agent: TagAgent = game.agents[i]
		bodies[i].position = Vector3(agent.x, agent.y, agent.z)


func _show_preview() -> void:
	if _preview:
		_preview.free()
	var rules: TagRules = TagRules.read()
	_preview = TagRoomLook.new(rules, TagLayout.read(preview_layout, rules))
	add_child(_preview)
	update_configuration_warnings()


func _get_configuration_warnings() -> PackedStringArray:
	var rules: TagRules = TagRules.read()
	if rules.error:
		return [rules.error]
	var layout: TagLayout = TagLayout.read(preview_layout, rules)
	return [layout.error] if layout.error else []


func _clear_away() -> void:
	for body: AnimatableBody3D in bodies:
		body.free()
	bodies.clear()
	if look:
		look.free()


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
	_add_solid("Floor", Vector3(0.0, -0.5 * thick, 0.0), Vector3(width, thick, depth))
	var side: Vector3 = Vector3(thick, height, depth + 2.0 * thick)
	var front: Vector3 = Vector3(width, height, thick)
	var beyond_x: float = rules.wall_x + 0.5 * thick
	var beyond_z: float = rules.wall_z + 0.5 * thick
	_add_solid("West", Vector3(-beyond_x, 0.5 * height, 0.0), side)
	_add_solid("East", Vector3(beyond_x, 0.5 * height, 0.0), side)
	_add_solid("North", Vector3(0.0, 0.5 * height, -beyond_z), front)
	_add_solid("South", Vector3(0.0, 0.5 * height, beyond_z), front)
	for index: int in layout.count:
		_add_solid("Box%d" % index, layout.centre(index), layout.extent(index))


func _add_solid(label: String, centre: Vector3, extent: Vector3) -> void:
	var body: StaticBody3D = StaticBody3D.new()
	body.name = label
	body.position = centre
	body.collision_layer = SOLID_LAYER
	body.add_child(_shape(extent))
	_room.add_child(body)


func _add_agents(rules: TagRules) -> void:
	for i: int in 2:
		var body: AnimatableBody3D = AnimatableBody3D.new()
		body.name = "Agent%d" % (i + 1)
		body.sync_to_physics = false
		body.collision_layer = AGENT_LAYER
		body.add_child(_shape(Vector3.ONE * rules.size))
		add_child(body)
		bodies.append(body)


func _shape(extent: Vector3) -> CollisionShape3D:
	var shape: CollisionShape3D = CollisionShape3D.new()
	var box: BoxShape3D = BoxShape3D.new()
	box.size = extent
	shape.shape = box
	return shape
