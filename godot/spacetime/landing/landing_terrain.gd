class_name LandingTerrain
extends StaticBody3D
## Rough ground: a height map that rays and craft collide with, drawn only in a window.

const CELLS: int = 96
const CELL_M: float = 20.0
const ROUGHNESS_M: float = 14.0

@export var paint: Material

var _heights: PackedFloat32Array = []


func build(terrain_seed: int) -> void:
	var noise: FastNoiseLite = FastNoiseLite.new()
	noise.seed = terrain_seed
	noise.frequency = 0.006
	noise.fractal_octaves = 4
	for z: int in CELLS + 1:
		for x: int in CELLS + 1:
			var at: Vector2 = (Vector2(x, z) - 0.5 * Vector2(CELLS, CELLS)) * CELL_M
			_heights.append(noise.get_noise_2dv(at) * ROUGHNESS_M)
	var shape: HeightMapShape3D = HeightMapShape3D.new()
	shape.map_width = CELLS + 1
	shape.map_depth = CELLS + 1
	shape.map_data = _heights
	var holder: CollisionShape3D = CollisionShape3D.new()
	holder.shape = shape
	holder.scale = Vector3(CELL_M, 1.0, CELL_M)
	add_child(holder)
	if DisplayServer.get_name() != "headless":
		_draw()


## Between the four corners of a cell.
func height_at(at: Vector3) -> float:
	var cell: Vector2 = (Vector2(at.x, at.z) / CELL_M + 0.5 * Vector2(CELLS, CELLS)).clampf(
		0.0, CELLS - 0.001
	)
	var x: int = int(cell.x)
	var z: int = int(cell.y)
	var near: float = lerpf(_height(x, z), _height(x + 1, z), cell.x - x)
	var far: float = lerpf(_height(x, z + 1), _height(x + 1, z + 1), cell.x - x)
	return lerpf(near, far, cell.y - z)


func highest_around(at: Vector3, radius_m: float) -> float:
	var found: float = height_at(at)
	for i: int in 16:
		var side: Vector2 = Vector2.from_angle(TAU * i / 16.0) * radius_m
		found = maxf(found, height_at(at + Vector3(side.x, 0.0, side.y)))
	return found


func _height(x: int, z: int) -> float:
	return _heights[z * (CELLS + 1) + x]


func _draw() -> void:
	var tool: SurfaceTool = SurfaceTool.new()
	tool.begin(Mesh.PRIMITIVE_TRIANGLES)
	for z: int in CELLS + 1:
		for x: int in CELLS + 1:
			var flat: Vector2 = (Vector2(x, z) - 0.5 * Vector2(CELLS, CELLS)) * CELL_M
			tool.add_vertex(Vector3(flat.x, _height(x, z), flat.y))
	for z: int in CELLS:
		for x: int in CELLS:
			var at: int = z * (CELLS + 1) + x
			for corner: int in [0, 1, CELLS + 1, 1, CELLS + 2, CELLS + 1]:
				tool.add_index(at + corner)
	tool.generate_normals()
	var drawn: MeshInstance3D = MeshInstance3D.new()
	drawn.mesh = tool.commit()
	drawn.material_override = paint
	add_child(drawn)
