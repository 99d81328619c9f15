class_name TagBurst
extends Node3D
## What a tag looks like: a ring that spreads on the ground, and bits that fly off.

const LASTS_SEC: float = 1.0
const RING_SEC: float = 0.7
const RING_M: float = 3.2
const BITS: int = 18
const BIT_M: float = 0.3
const FALL_MPS2: float = 14.0
## Turns a count into directions that never line up.
const GOLDEN_ANGLE: float = 2.39996
const SEGMENTS: int = 48

var _age: float = INF
var _colours: Array[Color] = []
var _ring: MeshInstance3D = MeshInstance3D.new()
var _ring_mesh: ImmediateMesh = ImmediateMesh.new()
var _bits: MultiMeshInstance3D = MultiMeshInstance3D.new()


func _init() -> void:
	name = "Burst"
	visible = false
	_ring.mesh = _ring_mesh
	_ring.material_override = TagLook.glow()
	_ring.cast_shadow = GeometryInstance3D.SHADOW_CASTING_SETTING_OFF
	add_child(_ring)
	var many: MultiMesh = MultiMesh.new()
	many.transform_format = MultiMesh.TRANSFORM_3D
	many.use_colors = true
	many.mesh = TagBlock.mesh(Vector3.ONE * BIT_M, 0.2 * BIT_M)
	many.instance_count = BITS
	_bits.multimesh = many
	var material: StandardMaterial3D = TagLook.matt(Color.WHITE)
	material.vertex_color_use_as_albedo = true
	material.vertex_color_is_srgb = true
	_bits.material_override = material
	_bits.custom_aabb = AABB(Vector3(-5.0, -1.0, -5.0), Vector3(10.0, 6.0, 10.0))
	add_child(_bits)


## Begin, at this place; the first colour is the ring's.
func begin(at: Vector3, colours: Array[Color]) -> void:
	position = at
	_colours = colours
	_age = 0.0


func start_over() -> void:
	_age = INF
	visible = false


func advance(seconds: float) -> void:
	_age += seconds
	visible = _age < LASTS_SEC
	if visible:
		_draw_ring()
		_place_bits()


func _draw_ring() -> void:
	_ring_mesh.clear_surfaces()
	var share: float = _age / RING_SEC
	if share >= 1.0:
		return
	var outer: float = RING_M * (1.0 - (1.0 - share) ** 3)
	var inner: float = outer * (0.55 + 0.4 * share)
	var strength: float = 0.75 * (1.0 - share) ** 1.5
	_ring_mesh.surface_begin(Mesh.PRIMITIVE_TRIANGLE_STRIP)
	for segment: int in SEGMENTS + 1:
		var angle: float = TAU * segment / SEGMENTS
		var along: Vector3 = Vector3(cos(angle), 0.0, sin(angle))
		_ring_mesh.surface_set_color(Color(_colours[0], 0.0))
		_ring_mesh.surface_add_vertex(inner * along)
		_ring_mesh.surface_set_color(Color(_colours[0], strength))
		_ring_mesh.surface_add_vertex(outer * along)
	_ring_mesh.surface_end()


func _place_bits() -> void:
	var shrink: float = 1.0 - (_age / LASTS_SEC) ** 2
	for bit: int in BITS:
		var angle: float = GOLDEN_ANGLE * bit
		var speed: float = 1.4 + 4.0 * fposmod(0.618 * bit, 1.0)
		var rise: float = 4.0 + 2.5 * fposmod(0.377 * bit, 1.0)
		var up: float = 0.5 + rise * _age - 0.5 * FALL_MPS2 * _age * _age
		var place: Vector3 = speed * _age * Vector3(cos(angle), 0.0, sin(angle))
		place.y = maxf(up, 0.5 * BIT_M)
		var spin: Basis = Basis(Vector3(cos(angle), 0.6, sin(angle)).normalized(), 9.0 * _age + bit)
		var size: Vector3 = Vector3.ONE * shrink * (0.6 + 0.6 * fposmod(0.271 * bit, 1.0))
		_bits.multimesh.set_instance_transform(bit, Transform3D(spin.scaled(size), place))
		_bits.multimesh.set_instance_color(bit, _colours[bit % _colours.size()])
