@tool
class_name TagRoundedBox
extends PrimitiveMesh
## A box mesh with rounded edges, centred on the origin.

## Steps from the flat part of a side to its edge.
const STEPS: int = 2

## Width, height and depth.
@export_custom(PROPERTY_HINT_NONE, "suffix:m") var size: Vector3 = Vector3.ONE:
	set(value):
		if value != size:
			size = value
			request_update()
## Radius of the edges.
@export_range(0.0, 1.0, 0.001, "or_greater", "suffix:m") var radius: float = 0.1:
	set(value):
		if value != radius:
			radius = value
			request_update()


func _create_mesh_array() -> Array:
	var arrays: Array = []
	arrays.resize(Mesh.ARRAY_MAX)
	arrays[Mesh.ARRAY_VERTEX] = PackedVector3Array()
	arrays[Mesh.ARRAY_NORMAL] = PackedVector3Array()
	arrays[Mesh.ARRAY_INDEX] = PackedInt32Array()
	for axis: int in 3:
		for side: float in [-1.0, 1.0]:
			_add_side(arrays, axis, side)
	return arrays


func _add_side(arrays: Array, axis: int, side: float) -> void:
	var half: Vector3 = 0.5 * size
	var flat: Vector3 = half - Vector3.ONE * radius
	var across: int = (axis + 1) % 3
	var along: int = (axis + 2) % 3
	var columns: PackedFloat32Array = _cuts(half[across])
	var rows: PackedFloat32Array = _cuts(half[along])
	var first: int = arrays[Mesh.ARRAY_VERTEX].size()
	for row: float in rows:
		for column: float in columns:
			var corner: Vector3 = Vector3.ZERO
			corner[axis] = side * half[axis]
			corner[across] = column
			corner[along] = row
			var middle: Vector3 = corner.clamp(-flat, flat)
			var normal: Vector3 = (corner - middle).normalized()
			arrays[Mesh.ARRAY_NORMAL].append(normal)
			arrays[Mesh.ARRAY_VERTEX].append(middle + normal * radius)
	var width: int = columns.size()
	for row: int in rows.size() - 1:
		for column: int in width - 1:
			var at: int = first + row * width + column
			var corners: PackedInt32Array = [
				at, at + width, at + 1, at + 1, at + width, at + width + 1
			]
			if side < 0.0:
				corners.reverse()
			arrays[Mesh.ARRAY_INDEX].append_array(corners)


## Where a side is cut along an axis: at even angles as seen from the centre of the rounding.
func _cuts(half: float) -> PackedFloat32Array:
	var cuts: PackedFloat32Array = []
	for step: int in range(-STEPS, STEPS + 1):
		cuts.append(half - radius + radius * tan(0.25 * PI * absi(step) / STEPS))
		cuts[-1] *= signf(step + 0.5)
	cuts.insert(STEPS, -cuts[STEPS])
	return cuts
