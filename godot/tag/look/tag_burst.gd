class_name TagBurst
extends Node3D
## The effect of a tag: a ring that spreads on the ground, and bits that fly off.

## Turns a count into directions that never line up.
const GOLDEN_ANGLE: float = 2.39996
const SEGMENTS: int = 48

## How long the bits fly.
@export_range(0.1, 5.0, 0.01, "suffix:s") var length: float = 1.0
## How long the ring spreads.
@export_range(0.1, 5.0, 0.01, "suffix:s") var ring_length: float = 0.7
## Radius of the ring at its end.
@export_range(0.1, 10.0, 0.1, "suffix:m") var ring_radius: float = 3.2
## How fast the bits fall.
@export_range(0.0, 50.0, 0.1, "suffix:m/s²") var gravity: float = 14.0
## How many bits fly off.
@export_range(0, 200) var bit_count: int = 18

var _age: float = INF
var _ring_mesh: ImmediateMesh = ImmediateMesh.new()

@onready var _bits: MultiMesh = $Bits.multimesh


func _ready() -> void:
	$Ring.mesh = _ring_mesh
	_bits.instance_count = bit_count


## Start at this place.
func start(at: Vector3) -> void:
	position = at
	_age = 0.0


func reset() -> void:
	_age = INF
	visible = false


func advance(seconds: float) -> void:
	_age += seconds
	visible = _age < length
	if visible:
		_draw_ring()
		_place_bits()


func _draw_ring() -> void:
	_ring_mesh.clear_surfaces()
	var share: float = _age / ring_length
	if share >= 1.0:
		return
	var outer: float = ring_radius * (1.0 - (1.0 - share) ** 3)
	var inner: float = outer * (0.55 + 0.4 * share)
	var opacity: float = 0.75 * (1.0 - share) ** 1.5
	var color: Color = TagLook.role_color("seeker")
	_ring_mesh.surface_begin(Mesh.PRIMITIVE_TRIANGLE_STRIP)
	for segment: int in SEGMENTS + 1:
		var angle: float = TAU * segment / SEGMENTS
		var along: Vector3 = Vector3(cos(angle), 0.0, sin(angle))
		_ring_mesh.surface_set_color(Color(color, 0.0))
		_ring_mesh.surface_add_vertex(inner * along)
		_ring_mesh.surface_set_color(Color(color, opacity))
		_ring_mesh.surface_add_vertex(outer * along)
	_ring_mesh.surface_end()


func _place_bits() -> void:
	var colors: Array[Color] = [
		TagLook.role_color("seeker"), TagLook.role_color("hider"), TagLook.pale()
	]
	var lowest: float = 0.5 * _bits.mesh.get_aabb().size.y
	var shrink: float = 1.0 - (_age / length) ** 2
	for bit: int in bit_count:
		var angle: float = GOLDEN_ANGLE * bit
		var speed: float = 1.4 + 4.0 * fposmod(0.618 * bit, 1.0)
		var rise: float = 4.0 + 2.5 * fposmod(0.377 * bit, 1.0)
		var up: float = 0.5 + rise * _age - 0.5 * gravity * _age * _age
		var place: Vector3 = speed * _age * Vector3(cos(angle), 0.0, sin(angle))
		place.y = maxf(up, lowest)
		var spin: Basis = Basis(Vector3(cos(angle), 0.6, sin(angle)).normalized(), 9.0 * _age + bit)
		var size: Vector3 = Vector3.ONE * shrink * (0.6 + 0.6 * fposmod(0.271 * bit, 1.0))
		_bits.set_instance_transform(bit, Transform3D(spin.scaled(size), place))
		_bits.set_instance_color(bit, colors[bit % colors.size()])
