class_name VoxelTerrain
extends Node3D
## An endless voxel world around a viewer: chunks are queued, generated a few per tick, meshed in
## three levels of detail, and dropped when they are far.
##
## Rugged regions have many more faces than plains; the generator is slow there.

signal chunk_generated(msec: float)

const RADIUS: int = 8
const KEEP_RADIUS: int = 10
const LOD_RADII: Array[int] = [3, 6]
const TICKS_PER_CHUNK: int = 3
const TICKS_PER_DROP: int = 4
const PLAINS_M: float = 8.0
const SPIRES_M: float = 70.0
const RUGGED_FROM: float = 0.25
const CRACK_M: int = 3

@export var paint: Material

var chunks: Dictionary[Vector2i, VoxelChunk] = {}
var active_chunks: int:
	get:
		return chunks.size()
var queued_chunks: int:
	get:
		return _queue.size()
var memory_bytes: int = 0
## Since `restart`.
var generated: int = 0
var requested: int = 0
var cracks: int = 0
var most_faces: int = 0
## Of all chunks together: the work of the generator, on any machine.
var faces_generated: int = 0
## Of the latest chunk.
var last_faces: int = 0
var most_active: int = 0
var longest_queue: int = 0

var _queue: Array[Vector2i] = []
var _far: Array[Vector2i] = []
var _middle: Vector2i = Vector2i.ZERO
var _ticks: int = 0
var _plains: FastNoiseLite = FastNoiseLite.new()
var _spires: FastNoiseLite = FastNoiseLite.new()
var _regions: FastNoiseLite = FastNoiseLite.new()


## Begin with the chunks below and next to a viewer; the others are queued.
func restart(terrain_seed: int, viewer: Vector3) -> void:
	for chunk: VoxelChunk in chunks.values():
		chunk.free()
	chunks.clear()
	for noise: FastNoiseLite in [_plains, _spires, _regions]:
		noise.seed = terrain_seed & 0x7FFFFFFF
		noise.fractal_type = FastNoiseLite.FRACTAL_NONE
	_plains.frequency = 0.02
	_spires.frequency = 0.11
	_regions.frequency = 0.004
	_ticks = 0
	memory_bytes = 0
	generated = 0
	requested = 0
	cracks = 0
	most_faces = 0
	faces_generated = 0
	last_faces = 0
	most_active = 0
	longest_queue = 0
	_queue = []
	_middle = chunk_at(viewer)
	for z: int in range(-1, 2):
		for x: int in range(-1, 2):
			generate(_middle + Vector2i(x, z))
	_request_around()


## Queue what a viewer at this place needs, and generate and drop some of it; returns how many
## chunks were asked for.
func tick(viewer: Vector3) -> int:
	var before: int = requested
	var middle: Vector2i = chunk_at(viewer)
	if middle != _middle:
		_middle = middle
		_request_around()
	_ticks += 1
	if _queue and _ticks % TICKS_PER_CHUNK == 0:
		generate(_queue.pop_back())
	if _far and _ticks % TICKS_PER_DROP == 0:
		_drop(_far.pop_back())
	most_active = maxi(most_active, chunks.size())
	longest_queue = maxi(longest_queue, _queue.size())
	return requested - before


func chunk_at(place: Vector3) -> Vector2i:
	return Vector2i(floori(place.x / VoxelChunk.SIDE), floori(place.z / VoxelChunk.SIDE))


## Whether one can stand there: the chunk has a collision shape.
func is_solid(place: Vector3) -> bool:
	var chunk: VoxelChunk = chunks.get(chunk_at(place))
	return chunk != null and chunk.lod == 0


## The height of the ground, in whole voxels.
func height(x: float, z: float) -> int:
	var level: float = PLAINS_M * _plains.get_noise_2d(x, z)
	var rugged: float = _regions.get_noise_2d(x, z) - RUGGED_FROM
	if rugged > 0.0:
		level += SPIRES_M * minf(4.0 * rugged, 1.0) * absf(_spires.get_noise_2d(x, z))
	return roundi(level)


## Make a chunk, or make it again in the level of detail that it needs now.
func generate(at: Vector2i) -> void:
	var begun: int = Time.get_ticks_usec()
	var lod: int = _lod_of(at)
	var chunk: VoxelChunk = chunks.get(at)
	if not chunk:
		chunk = VoxelChunk.new(paint)
		chunk.position = Vector3(at.x, 0.0, at.y) * VoxelChunk.SIDE
		chunks[at] = chunk
		add_child(chunk)
	memory_bytes -= chunk.memory_bytes
	chunk.build(lod, _heights(at, lod))
	memory_bytes += chunk.memory_bytes
	generated += 1
	last_faces = chunk.faces
	faces_generated += chunk.faces
	most_faces = maxi(most_faces, chunk.faces)
	_find_cracks(at, chunk)
	chunk_generated.emit((Time.get_ticks_usec() - begun) / 1000.0)


func _heights(at: Vector2i, lod: int) -> PackedInt32Array:
	var size: int = VoxelChunk.SIDE >> lod
	var cell: float = VoxelChunk.SIDE / float(size)
	var found: PackedInt32Array = []
	for z: int in range(-1, size + 1):
		for x: int in range(-1, size + 1):
			var from_x: float = at.x * VoxelChunk.SIDE + (x + 0.5) * cell
			found.append(height(from_x, at.y * VoxelChunk.SIDE + (z + 0.5) * cell))
	return found


func _lod_of(at: Vector2i) -> int:
	var away: float = Vector2(at - _middle).length()
	for lod: int in LOD_RADII.size():
		if away <= LOD_RADII[lod]:
			return lod
	return LOD_RADII.size()


## The queue's nearest chunk is its last.
func _request_around() -> void:
	var wanted: Array[Vector2i] = []
	for z: int in range(-RADIUS, RADIUS + 1):
		for x: int in range(-RADIUS, RADIUS + 1):
			var at: Vector2i = _middle + Vector2i(x, z)
			if Vector2(x, z).length() > RADIUS:
				continue
			var chunk: VoxelChunk = chunks.get(at)
			if not chunk or chunk.lod != _lod_of(at):
				wanted.append(at)
	var known: Dictionary[Vector2i, bool] = {}
	for at: Vector2i in _queue:
		known[at] = true
	for at: Vector2i in wanted:
		requested += 0 if at in known else 1
	wanted.sort_custom(
		func(a: Vector2i, b: Vector2i) -> bool:
			return (a - _middle).length_squared() > (b - _middle).length_squared()
	)
	_queue = wanted
	_far = []
	for at: Vector2i in chunks:
		if Vector2(at - _middle).length() > KEEP_RADIUS:
			_far.append(at)


func _drop(at: Vector2i) -> void:
	var chunk: VoxelChunk = chunks.get(at)
	if chunk and Vector2(at - _middle).length() > KEEP_RADIUS:
		memory_bytes -= chunk.memory_bytes
		chunks.erase(at)
		chunk.free()


## Where levels of detail meet, borders may not: a crack that one can see through.
func _find_cracks(at: Vector2i, chunk: VoxelChunk) -> void:
	for side: int in VoxelChunk.SIDES.size():
		var other: VoxelChunk = chunks.get(at + VoxelChunk.SIDES[side])
		if other and other.lod != chunk.lod and chunk.crack_m(side, other) >= CRACK_M:
			cracks += 1
