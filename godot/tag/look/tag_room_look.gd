@tool
class_name TagRoomLook
extends Node3D
## How the room looks: floor, boxes, and the walls, of which the nearest is cut down to a rim.
##
## The camera stands to the south (+z) and above; no other wall comes between it and an agent.

const FLOOR_SHADER: Shader = preload("res://tag/look/tag_floor.gdshader")
const CONTACT_SHADER: Shader = preload("res://tag/look/tag_contact.gdshader")
const RIM_M: float = 0.22
const SLAB_M: float = 0.7
const ROUNDING_M: float = 0.07
## Flat things lie this far above what they lie on.
const ABOVE_M: float = 0.012
## How solid a box still looks that hides an agent, and how fast it becomes so.
const THIN: float = 0.4
const THINNING_PER_SEC: float = 10.0

var _rules: TagRules
var _meshes: Dictionary[Vector3, ArrayMesh] = {}
var _wall: StandardMaterial3D = TagLook.matt(TagLook.WALL)
var _boxes: Array[MeshInstance3D] = []
var _spaces: Array[AABB] = []


func _init(rules: TagRules, layout: TagLayout) -> void:
	_rules = rules
	name = "RoomLook"
	_add_floor()
	_add_walls()
	var jump_m: float = 0.5 * rules.jump_speed ** 2 * rules.tick_sec / rules.fall_per_tick
	for index: int in layout.count:
		var extent: Vector3 = layout.extent(index)
		var centre: Vector3 = layout.centre(index)
		var colour: Color = TagLook.LOW if extent.y <= jump_m else TagLook.TALL
		_boxes.append(_add_block("Box%d" % index, extent, centre, TagLook.matt(colour)))
		_spaces.append(AABB(centre - 0.5 * extent, extent))
		add_child(contact(Vector2(extent.x, extent.z), 0.5, 0.35, Vector3(centre.x, 0.0, centre.z)))


## Let those boxes grow thin that are between an eye and one of the places.
func reveal(places: PackedVector3Array, eye: Vector3, seconds: float) -> void:
	for index: int in _boxes.size():
		var hides: bool = false
		for place: Vector3 in places:
			hides = hides or _spaces[index].intersects_segment(eye, place) != null
		var look: StandardMaterial3D = _boxes[index].material_override
		var solid: float = look.albedo_color.a
		if not hides and solid == 1.0:
			continue
		solid = move_toward(
			solid, THIN if hides else 1.0, THINNING_PER_SEC * (1.0 - THIN) * seconds
		)
		look.albedo_color.a = solid
		look.transparency = (
			BaseMaterial3D.TRANSPARENCY_ALPHA
			if solid < 1.0
			else BaseMaterial3D.TRANSPARENCY_DISABLED
		)


## A soft shadow around a footprint that lies at `at`.
static func contact(footprint: Vector2, spread: float, strength: float, at: Vector3) -> Node3D:
	var plane: PlaneMesh = PlaneMesh.new()
	plane.size = footprint + 2.0 * Vector2.ONE * spread
	var material: ShaderMaterial = ShaderMaterial.new()
	material.shader = CONTACT_SHADER
	material.set_shader_parameter("half_size", 0.5 * footprint)
	material.set_shader_parameter("spread_m", spread)
	material.set_shader_parameter("strength", strength)
	return TagLook.piece(plane, material, at + Vector3.UP * ABOVE_M)


func _add_floor() -> void:
	var size: Vector2 = 2.0 * Vector2(_rules.wall_x, _rules.wall_z)
	var plane: PlaneMesh = PlaneMesh.new()
	plane.size = size
	var material: ShaderMaterial = ShaderMaterial.new()
	material.shader = FLOOR_SHADER
	material.set_shader_parameter("half_size", 0.5 * size)
	material.set_shader_parameter("tile", TagLook.TILE)
	material.set_shader_parameter("other_tile", TagLook.OTHER_TILE)
	material.set_shader_parameter("line", TagLook.LINE)
	add_child(TagLook.piece(plane, material))
	var outer: Vector2 = size + 2.0 * Vector2.ONE * TagArena.WALL_THICKNESS
	var slab: Vector3 = Vector3(outer.x, SLAB_M, outer.y)
	var slab_mesh: ArrayMesh = TagBlock.mesh(slab, ROUNDING_M)
	var down: Vector3 = Vector3.DOWN * (0.5 * SLAB_M + 0.02)
	add_child(TagLook.piece(slab_mesh, TagLook.matt(TagLook.SLAB), down))
	add_child(contact(outer, 2.5, 0.4, Vector3.DOWN * SLAB_M))


func _add_walls() -> void:
	var thick: float = TagArena.WALL_THICKNESS
	var height: float = _rules.wall_height
	var beyond_x: float = _rules.wall_x + 0.5 * thick
	var beyond_z: float = _rules.wall_z + 0.5 * thick
	var side: Vector3 = Vector3(thick, height, 2.0 * (_rules.wall_z + thick))
	var front: Vector3 = Vector3(2.0 * _rules.wall_x, height, thick)
	var rim: Vector3 = Vector3(front.x, RIM_M, thick)
	_add_block("West", side, Vector3(-beyond_x, 0.5 * height, 0.0), _wall)
	_add_block("East", side, Vector3(beyond_x, 0.5 * height, 0.0), _wall)
	_add_block("North", front, Vector3(0.0, 0.5 * height, -beyond_z), _wall)
	_add_block("South", rim, Vector3(0.0, 0.5 * RIM_M, beyond_z), _wall)


## A block that stands: its lower rounding is in the ground.
func _add_block(label: String, extent: Vector3, centre: Vector3, look: Material) -> MeshInstance3D:
	var down: Vector3 = Vector3.DOWN * ROUNDING_M
	if not _meshes.has(extent):
		_meshes[extent] = TagBlock.mesh(extent - down, ROUNDING_M)
	var block: MeshInstance3D = TagLook.piece(_meshes[extent], look, centre + 0.5 * down)
	block.name = label
	add_child(block)
	return block
