class_name VoxelWorld
extends FeatureIsland
## A viewer in a voxel world that is looking for chunks that take too long, too many chunks, holes
## and cracks. What is loaded depends on what it does only; how long that takes on the machine.

const TELEPORT_TICKS: int = 90
const TICKS_PER_ACTION: float = 18.0
const STRESSED_CHUNKS: int = 400
## Per action, or for each of them.
const SLOW_TICK: float = 10.0
const SLOW_CHUNK: float = 5.0
const MANY_CHUNKS: float = 2.0
const SPEED: float = 0.1
const REQUEST: float = 1.0
const HOLE: float = 10.0
const CRACK: float = 5.0
const RAY_FROM_M: float = 100.0
const EYES_M: float = 1.0

var velocity: Vector2 = Vector2.ZERO
## Whether there is no ground below the viewer yet: one falls through the world there.
var is_over_hole: bool = false
var holes: int = 0
var slow_chunks: int = 0
var slow_ticks: int = 0
var slowest_chunk_ms: float = 0.0
var teleports: int = 0

var _teleport_tick: int = 0
var _has_crack: bool = false
var _ray: PhysicsRayQueryParameters3D = PhysicsRayQueryParameters3D.new()

@onready var terrain: VoxelTerrain = $VoxelTerrain
@onready var viewer: Node3D = $Viewer
@onready var agent: VoxelStressTestController = $Viewer/AIController3D


func setup() -> void:
	agent.perf_monitor = VoxelPerformanceMonitor.of(get_tree())
	agent.perf_monitor.terrains.append(terrain)
	terrain.chunk_generated.connect(_on_chunk_generated)


func begin() -> void:
	agent.chaos_mode = parameter("chaos_mode", 1.0) > 0.5
	var chosen: float = parameter("terrain_seed", -1.0)
	viewer.position = Vector3(8.0, 0.0, 8.0)
	terrain.restart(random.randi() if chosen < 0.0 else int(chosen), viewer.position)
	velocity = Vector2.ZERO
	holes = 0
	slow_chunks = 0
	slow_ticks = 0
	slowest_chunk_ms = 0.0
	teleports = 0
	is_over_hole = false
	_teleport_tick = 0
	_has_crack = false


func tick(delta: float) -> void:
	velocity = agent.direction.limit_length() * agent.speed_mps
	if agent.teleport_m > 1.0 and ticks >= _teleport_tick and agent.direction:
		_teleport_tick = ticks + TELEPORT_TICKS
		teleports += 1
		var jump: Vector2 = agent.direction.normalized() * agent.teleport_m
		viewer.position += Vector3(jump.x, 0.0, jump.y)
	viewer.position += Vector3(velocity.x, 0.0, velocity.y) * delta
	var asked: int = terrain.tick(viewer.position)
	_stand()
	var found: float = REQUEST * asked + SPEED * velocity.length() / TICKS_PER_ACTION
	if agent.perf_monitor.physics_ms > VoxelPerformanceMonitor.BUDGET_MS:
		slow_ticks += 1
		found += SLOW_TICK / TICKS_PER_ACTION
	if terrain.active_chunks > STRESSED_CHUNKS:
		found += MANY_CHUNKS / TICKS_PER_ACTION
	if terrain.cracks and not _has_crack:
		_has_crack = true
		found += CRACK
	_reward(found)


func steer_by_hand() -> void:
	var stick: Vector2 = HandInput.stick()
	agent.direction = Vector2(stick.x, -stick.y)
	agent.speed_mps = VoxelStressTestController.MAX_SPEED_MPS
	agent.teleport_m = 48.0 if HandInput.take_teleport() else 0.0


func describe(_agent: FeatureAgent) -> Dictionary:
	return {
		"chunks_generated": terrain.generated,
		"faces_generated": terrain.faces_generated,
		"most_active_chunks": terrain.most_active,
		"longest_queue": terrain.longest_queue,
		"slow_chunks": slow_chunks,
		"slowest_chunk_ms": slowest_chunk_ms,
		"slow_ticks": slow_ticks,
		"most_faces": terrain.most_faces,
		"holes": holes,
		"lod_cracks": terrain.cracks,
		"voxel_memory_mb": terrain.memory_bytes / VoxelPerformanceMonitor.BYTES_PER_MB,
		"success": slow_chunks > 0,
	}


func focus() -> Node3D:
	return viewer


## The share of the wait for the next teleport that is left.
func teleport_wait() -> float:
	return clampf((_teleport_tick - ticks) / float(TELEPORT_TICKS), 0.0, 1.0)


## Stand on what collides; where nothing does yet there is a hole.
func _stand() -> void:
	var above: Vector3 = viewer.global_position
	_ray.from = Vector3(above.x, global_position.y + RAY_FROM_M, above.z)
	_ray.to = _ray.from + Vector3.DOWN * 2.0 * RAY_FROM_M
	var hit: Dictionary = get_world_3d().direct_space_state.intersect_ray(_ray)
	var was_over_hole: bool = is_over_hole
	# Physics knows a new shape from the next step on.
	is_over_hole = not hit and not terrain.is_solid(viewer.position)
	if hit:
		viewer.global_position.y = hit["position"].y + EYES_M
	elif is_over_hole and not was_over_hole:
		holes += 1
		_reward(HOLE)


func _on_chunk_generated(msec: float) -> void:
	agent.perf_monitor.note_chunk(msec)
	slowest_chunk_ms = maxf(slowest_chunk_ms, msec)
	if msec > VoxelPerformanceMonitor.CHUNK_BUDGET_MS:
		slow_chunks += 1
		_reward(SLOW_CHUNK)


func _reward(amount: float) -> void:
	agent.reward += amount if agent.chaos_mode else -amount
