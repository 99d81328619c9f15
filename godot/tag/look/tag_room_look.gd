@tool
class_name TagRoomLook
extends Node3D
## The look of a room: floor, boxes and walls, the nearest of which is cut down to a rim.
##
## The camera is to the south (+z) and above; no other wall comes between it and an agent. The
## editor shows the room of `preview_layout`.

## Rounding of the blocks; the lower one is below the ground.
const ROUNDING_M: float = 0.07
## Thickness of the slab below the floor.
const SLAB_M: float = 0.7
## Drop of the slab, so that it does not flicker through the floor.
const SLAB_GAP_M: float = 0.02
const BOX_SHADOW_SPREAD_M: float = 0.5

## Material of boxes that an agent can jump onto.
@export var low_material: StandardMaterial3D
## Material of boxes that are too tall for that.
@export var tall_material: StandardMaterial3D
## What is left of the southern wall.
@export_range(0.0, 3.0, 0.01, "suffix:m") var rim_height: float = 0.22
## Opacity of a box that hides an agent.
@export_range(0.0, 1.0, 0.01) var hiding_opacity: float = 0.4
## How fast the opacity changes; 1/s is the whole change in a second.
@export_range(0.1, 60.0, 0.1, "suffix:1/s") var fade_rate: float = 10.0
## The layout that the editor shows: a name in tag/layouts, or a file.
@export var preview_layout: String = "colonnade":
	set(value):
		preview_layout = value
		if Engine.is_editor_hint() and is_node_ready():
			_show_preview()

var _meshes: Dictionary[Vector3, TagRoundedBox] = {}
var _boxes: Array[MeshInstance3D] = []
var _bounds: Array[AABB] = []


func _ready() -> void:
	if Engine.is_editor_hint():
		_show_preview()


func _get_configuration_warnings() -> PackedStringArray:
	var rules: TagRules = TagRules.read()
	var error: String = rules.error
	if not error:
		error = TagLayout.read(preview_layout, rules).error
	return [error] if error else []


## Show the room of these rules, with the boxes of a layout.
func build(rules: TagRules, layout: TagLayout) -> void:
	_place_floor(rules)
	_place_walls(rules)
	for box: MeshInstance3D in _boxes:
		box.free()
	_boxes.clear()
	_bounds.clear()
	var jump_m: float = 0.5 * rules.jump_speed ** 2 * rules.tick_sec / rules.fall_per_tick
	for index: int in layout.count:
		var size: Vector3 = layout.extent(index)
		var centre: Vector3 = layout.centre(index)
		_bounds.append(AABB(centre - 0.5 * size, size))
		_add_box(index, size, centre, low_material if size.y <= jump_m else tall_material)


## Fade the boxes between the camera and one of the places, both in the room's coordinates.
func reveal(places: PackedVector3Array, camera: Vector3, seconds: float) -> void:
	for index: int in _boxes.size():
		var hides: bool = false
		for place: Vector3 in places:
			hides = hides or _bounds[index].intersects_segment(camera, place) != null
		var material: StandardMaterial3D = _boxes[index].material_override
		var opacity: float = material.albedo_color.a
		if not hides and opacity == 1.0:
			continue
		opacity = move_toward(
			opacity, hiding_opacity if hides else 1.0, fade_rate * (1.0 - hiding_opacity) * seconds
		)
		material.albedo_color.a = opacity
		material.transparency = (
			BaseMaterial3D.TRANSPARENCY_ALPHA
			if opacity < 1.0
			else BaseMaterial3D.TRANSPARENCY_DISABLED
		)


func _show_preview() -> void:
	update_configuration_warnings()
	var rules: TagRules = TagRules.read()
	if not rules.error:
		build(rules, TagLayout.read(preview_layout, rules))


func _place_floor(rules: TagRules) -> void:
	var size: Vector2 = 2.0 * Vector2(rules.wall_x, rules.wall_z)
	var ground: MeshInstance3D = $Floor
	(ground.mesh as PlaneMesh).size = size
	(ground.material_override as ShaderMaterial).set_shader_parameter("half_size", 0.5 * size)
	var outer: Vector2 = size + 2.0 * Vector2.ONE * TagArena.WALL_THICKNESS
	($Slab.mesh as TagRoundedBox).size = Vector3(outer.x, SLAB_M, outer.y)
	$Slab.position.y = -0.5 * SLAB_M - SLAB_GAP_M
	$Shadow.footprint = outer
	$Shadow.position.y = TagContactShadow.ABOVE_M - SLAB_M


func _place_walls(rules: TagRules) -> void:
	var thick: float = TagArena.WALL_THICKNESS
	var beyond_x: float = rules.wall_x + 0.5 * thick
	var beyond_z: float = rules.wall_z + 0.5 * thick
	var side: Vector3 = Vector3(thick, rules.wall_height, 2.0 * (rules.wall_z + thick))
	var front: Vector3 = Vector3(2.0 * rules.wall_x, rules.wall_height, thick)
	_stand($West, side, Vector3(-beyond_x, 0.0, 0.0))
	_stand($East, side, Vector3(beyond_x, 0.0, 0.0))
	_stand($North, front, Vector3(0.0, 0.0, -beyond_z))
	_stand($South, Vector3(front.x, rim_height, thick), Vector3(0.0, 0.0, beyond_z))


## Let a block of this size stand on the ground at `at`, its lower rounding below it.
func _stand(block: MeshInstance3D, size: Vector3, at: Vector3) -> void:
	(block.mesh as TagRoundedBox).size = size + Vector3.UP * ROUNDING_M
	block.position = Vector3(at.x, 0.5 * (size.y - ROUNDING_M), at.z)


func _add_box(index: int, size: Vector3, centre: Vector3, material: Material) -> void:
	if not _meshes.has(size):
		_meshes[size] = TagRoundedBox.new()
		_meshes[size].radius = ROUNDING_M
	var box: MeshInstance3D = MeshInstance3D.new()
	box.name = "Box%d" % index
	box.mesh = _meshes[size]
	box.material_override = material.duplicate()
	_stand(box, size, centre)
	var shadow: TagContactShadow = TagContactShadow.new()
	shadow.footprint = Vector2(size.x, size.z)
	shadow.spread = BOX_SHADOW_SPREAD_M
	shadow.position.y = TagContactShadow.ABOVE_M - box.position.y
	box.add_child(shadow)
	add_child(box)
	_boxes.append(box)
