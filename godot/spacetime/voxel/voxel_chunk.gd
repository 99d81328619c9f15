class_name VoxelChunk
extends StaticBody3D
## 16 × 16 columns of voxels: a mesh of their visible faces, and a collision shape where it is near.

const SIDE: int = 16
const SIDES: Array[Vector2i] = [Vector2i(1, 0), Vector2i(-1, 0), Vector2i(0, 1), Vector2i(0, -1)]
const BYTES_PER_CORNER: int = 12

## 0 has voxels of 1 m, each further level twice as large ones.
var lod: int = -1
var memory_bytes: int = 0
var faces: int = 0
## Of the columns at the chunk's four borders, by side.
var borders: Array[PackedInt32Array] = []

var _mesh: MeshInstance3D = MeshInstance3D.new()
var _shape: CollisionShape3D = CollisionShape3D.new()


func _init(paint: Material) -> void:
	_mesh.material_override = paint
	add_child(_mesh)
	add_child(_shape)


## Make the mesh; `heights` has a row and a column more on each side.
func build(to_lod: int, heights: PackedInt32Array) -> void:
	lod = to_lod
	var size: int = SIDE >> lod
	_keep_borders(size, heights)
	var corners: PackedVector3Array = _corners_of(size, heights)
	faces = corners.size() / 6
	var arrays: Array = []
	arrays.resize(Mesh.ARRAY_MAX)
	arrays[Mesh.ARRAY_VERTEX] = corners
	var mesh: ArrayMesh = ArrayMesh.new()
	mesh.add_surface_from_arrays(Mesh.PRIMITIVE_TRIANGLES, arrays)
	_mesh.mesh = mesh
	memory_bytes = corners.size() * BYTES_PER_CORNER
	if lod == 0:
		var shape: ConcavePolygonShape3D = ConcavePolygonShape3D.new()
		shape.set_faces(corners)
		_shape.shape = shape
		memory_bytes += corners.size() * BYTES_PER_CORNER
	else:
		_shape.shape = null


## The greatest step between this chunk's border and its neighbour's, in m.
func crack_m(side: int, neighbour: VoxelChunk) -> int:
	var worst: int = 0
	var ours: PackedInt32Array = borders[side]
	var theirs: PackedInt32Array = neighbour.borders[side ^ 1]
	for at: int in SIDE:
		var here: int = ours[at * ours.size() / SIDE]
		var there: int = theirs[at * theirs.size() / SIDE]
		worst = maxi(worst, absi(here - there))
	return worst


## Two triangles for every face of a voxel that can be seen: the top of a column, and its sides
## above its neighbours.
func _corners_of(size: int, heights: PackedInt32Array) -> PackedVector3Array:
	var cell: float = SIDE / float(size)
	var width: int = size + 2
	var corners: PackedVector3Array = []
	for z: int in size:
		for x: int in size:
			var at: int = (z + 1) * width + x + 1
			var here: int = heights[at]
			var near: Vector3 = Vector3(x * cell, here, z * cell)
			var right: Vector3 = Vector3(near.x + cell, here, near.z)
			var far: Vector3 = Vector3(near.x, here, near.z + cell)
			var across: Vector3 = Vector3(right.x, here, far.z)
			_add_faces(corners, near, right, far, across, 1)
			var less: int = here - heights[at + 1]
			if less > 0:
				_add_faces(
					corners, across, right, across + Vector3.DOWN, right + Vector3.DOWN, less
				)
			less = here - heights[at - 1]
			if less > 0:
				_add_faces(corners, near, far, near + Vector3.DOWN, far + Vector3.DOWN, less)
			less = here - heights[at + width]
			if less > 0:
				_add_faces(corners, far, across, far + Vector3.DOWN, across + Vector3.DOWN, less)
			less = here - heights[at - width]
			if less > 0:
				_add_faces(corners, right, near, right + Vector3.DOWN, near + Vector3.DOWN, less)
	return corners


## A column of `count` faces from the top down; the corners of the topmost are given row by row.
func _add_faces(
	corners: PackedVector3Array, a: Vector3, b: Vector3, c: Vector3, d: Vector3, count: int
) -> void:
	for _face: int in count:
		corners.push_back(a)
		corners.push_back(b)
		corners.push_back(c)
		corners.push_back(b)
		corners.push_back(d)
		corners.push_back(c)
		a.y -= 1.0
		b.y -= 1.0
		c.y -= 1.0
		d.y -= 1.0


func _keep_borders(size: int, heights: PackedInt32Array) -> void:
	borders = []
	for side: Vector2i in SIDES:
		var found: PackedInt32Array = []
		for at: int in size:
			var x: int = (size - 1 if side.x > 0 else 0) if side.x else at
			var z: int = (size - 1 if side.y > 0 else 0) if side.y else at
			found.append(heights[(z + 1) * (size + 2) + x + 1])
		borders.append(found)
