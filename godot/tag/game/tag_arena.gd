class_name TagArena
extends Node3D
## One arena in Godot: solid bodies for floor, walls, boxes and agents, which follow a match.
##
## The match decides where everything is. The bodies let Godot's physics see and audit it; the look
## is added only where something is drawn.

const SCENE: String = "res://tag/game/tag_arena.tscn"
const LOOK_SCENE: String = "res://tag/look/tag_arena_look.tscn"
const WALL_THICKNESS: float = 0.5
const SOLID_LAYER: int = 1

## The match that is played here.
var game: TagMatch
## What can be seen of it; null where nothing is drawn.
var look: TagArenaLook

var _layout: TagLayout
var _boxes: Array[StaticBody3D] = []

## The two agents' bodies.
@onready var bodies: Array[AnimatableBody3D] = [$Agent1, $Agent2]


## A new arena; add it to the tree before `setup`.
static func create(label: String = "Arena1") -> TagArena:
	var arena: TagArena = (load(SCENE) as PackedScene).instantiate()
	arena.name = label
	return arena


## Play a match here.
func setup(new_match: TagMatch) -> void:
	game = new_match
	_layout = null
	_place_room()
	for body: AnimatableBody3D in bodies:
		_resize(body, Vector3.ONE * game.rules.size)
	if look:
		for agent_look: TagAgentLook in look.agents:
			agent_look.free()
		look.free()
	if TagLook.wanted:
		look = (load(LOOK_SCENE) as PackedScene).instantiate()
		add_child(look)
		look.setup(game, bodies)
	follow()


## Move the bodies to where the match says.
func follow() -> void:
	if game.layouts[game.layout_index] != _layout:
		_layout = game.layouts[game.layout_index]
		_place_boxes()
	for index: int in 2:
		var agent: TagAgent = game.agents[index]
		bodies[index].position = Vector3(agent.x, agent.y, agent.z)


func _place_room() -> void:
	var rules: TagRules = game.rules
	var thick: float = WALL_THICKNESS
	var width: float = 2.0 * rules.wall_x
	var depth: float = 2.0 * rules.wall_z
	var beyond_x: float = rules.wall_x + 0.5 * thick
	var beyond_z: float = rules.wall_z + 0.5 * thick
	var middle_y: float = 0.5 * rules.wall_height
	_place($Room/Floor, Vector3(0.0, -0.5 * thick, 0.0), Vector3(width, thick, depth))
	var side: Vector3 = Vector3(thick, rules.wall_height, depth + 2.0 * thick)
	_place($Room/West, Vector3(-beyond_x, middle_y, 0.0), side)
	_place($Room/East, Vector3(beyond_x, middle_y, 0.0), side)
	var front: Vector3 = Vector3(width, rules.wall_height, thick)
	_place($Room/North, Vector3(0.0, middle_y, -beyond_z), front)
	_place($Room/South, Vector3(0.0, middle_y, beyond_z), front)


func _place_boxes() -> void:
	for box: StaticBody3D in _boxes:
		box.free()
	_boxes.clear()
	for index: int in _layout.count:
		var box: StaticBody3D = StaticBody3D.new()
		box.name = "Box%d" % index
		box.collision_layer = SOLID_LAYER
		var shape: CollisionShape3D = CollisionShape3D.new()
		shape.name = "Shape"
		shape.shape = BoxShape3D.new()
		box.add_child(shape)
		_place(box, _layout.centre(index), _layout.extent(index))
		$Room.add_child(box)
		_boxes.append(box)


func _place(body: PhysicsBody3D, centre: Vector3, size: Vector3) -> void:
	body.position = centre
	_resize(body, size)


func _resize(body: PhysicsBody3D, size: Vector3) -> void:
	((body.get_node("Shape") as CollisionShape3D).shape as BoxShape3D).size = size
