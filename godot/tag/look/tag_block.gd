@tool
class_name TagBlock
extends RefCounted
## A box with rounded edges, as a mesh.

## Steps from the flat part of a side to its edge.
const STEPS: int = 2


## A block of this extent around the origin.
static func mesh(extent: Vector3, radius: float) -> ArrayMesh:
	var surface: SurfaceTool = SurfaceTool.new()
	surface.begin(Mesh.PRIMITIVE_TRIANGLES)
	var count: int = 0
	for axis: int in 3:
		for side: float in [-1.0, 1.0]:
			count = _add_side(surface, 0.5 * extent, radius, axis, side, count)
	return surface.commit()


static func _add_side(
	surface: SurfaceTool, half: Vector3, radius: float, axis: int, side: float, first: int
) -> int:
	var across: int = (axis + 1) % 3
	var along: int = (axis + 2) % 3
	var lines: PackedFloat32Array = _lines(half[across], radius)
	var rows: PackedFloat32Array = _lines(half[along], radius)
	var flat: Vector3 = half - Vector3.ONE * radius
	for row: float in rows:
		for line: float in lines:
			var corner: Vector3 = Vector3.ZERO
			corner[axis] = side * half[axis]
			corner[across] = line
			corner[along] = row
			var middle: Vector3 = corner.clamp(-flat, flat)
			var normal: Vector3 = (corner - middle).normalized()
			surface.set_normal(normal)
			surface.add_vertex(middle + normal * radius)
	var width: int = lines.size()
	for row: int in rows.size() - 1:
		for line: int in width - 1:
			var at: int = first + row * width + line
			var turn: PackedInt32Array = [
				at, at + width, at + 1, at + 1, at + width, at + width + 1
			]
			if side < 0.0:
				turn.reverse()
			for index: int in turn:
				surface.add_index(index)
	return first + rows.size() * width


## Where the mesh is cut along an axis: seen from the rounding's middle, at even angles.
static func _lines(half: float, radius: float) -> PackedFloat32Array:
	var beyond: PackedFloat32Array = []
	for step: int in STEPS + 1:
		beyond.append(half - radius + radius * tan(0.25 * PI * step / STEPS))
	var lines: PackedFloat32Array = beyond.duplicate()
	beyond.reverse()
	for at: float in lines:
		beyond.append(at)
	for index: int in STEPS + 1:
		beyond[index] = -beyond[index]
	return beyond
