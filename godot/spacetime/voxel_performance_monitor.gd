class_name VoxelPerformanceMonitor
extends Node
## How long ticks, frames and voxel chunks take, and what they hold: `get_statistics`.
##
## A stress scene adds it as `/root/VoxelPerformanceMonitor`. A tick is measured from after Sync,
## which may wait for a trainer, to the end of the physics step; a frame from there to the end of
## its drawing, or without a screen to the next tick.

const PATH: NodePath = ^"/root/VoxelPerformanceMonitor"
const BUDGET_MS: float = 1000.0 / 90.0
const CHUNK_BUDGET_MS: float = 5.0
const MEMORY_BUDGET_MB: float = 2048.0
const MOST_CHUNKS: int = 512
const BYTES_PER_MB: float = 1048576.0
## Averages are over about so many ticks or chunks.
const WINDOW: float = 30.0
const BEFORE_SYNC: int = RLAddon.Lockstep.FIRST - 1
const AFTER_SYNC: int = RLAddon.Lockstep.FIRST + 1
const LAST: int = (1 << 30) + 1

static var _current: VoxelPerformanceMonitor

## Of the last tick.
var physics_ms: float = 0.0
var render_ms: float = 0.0
## Since `clear`.
var chunk_avg_ms: float = 0.0
var chunk_max_ms: float = 0.0
var chunks_generated: int = 0
var slow_chunks: int = 0
var slow_ticks: int = 0
var ticks: int = 0
var tick_sum_ms: float = 0.0
var tick_max_ms: float = 0.0
## What holds chunks: each has `active_chunks`, `queued_chunks` and `memory_bytes`.
var terrains: Array[Node] = []

var _begun_usec: int = 0
var _scripts_usec: int = 0
var _stepping_since_usec: int = 0
var _frame_usec: int = 0


## The monitor of this game.
static func of(tree: SceneTree) -> VoxelPerformanceMonitor:
	if is_instance_valid(_current) and _current.is_queued_for_deletion():
		_current.name = &"Leaving"
		_current = null
	if not is_instance_valid(_current):
		_current = new()
		_current.name = PATH.get_name(1)
		tree.root.add_child.call_deferred(_current)
	return _current


func _init() -> void:
	process_mode = Node.PROCESS_MODE_ALWAYS
	process_priority = BEFORE_SYNC
	RenderingServer.frame_post_draw.connect(_end_frame)
	for at: Array in [
		[BEFORE_SYNC, _begin_tick], [AFTER_SYNC, _begin_scripts], [LAST, _end_scripts]
	]:
		add_child(Probe.new(at[0], at[1]))


func _process(_delta: float) -> void:
	_end_step()
	_frame_usec = Time.get_ticks_usec()


func clear() -> void:
	chunk_avg_ms = 0.0
	chunk_max_ms = 0.0
	chunks_generated = 0
	slow_chunks = 0
	slow_ticks = 0
	ticks = 0
	tick_sum_ms = 0.0
	tick_max_ms = 0.0


## A chunk was generated.
func note_chunk(msec: float) -> void:
	chunks_generated += 1
	chunk_max_ms = maxf(chunk_max_ms, msec)
	chunk_avg_ms += (msec - chunk_avg_ms) / minf(chunks_generated, WINDOW)
	if msec > CHUNK_BUDGET_MS:
		slow_chunks += 1


func get_statistics() -> Dictionary:
	terrains = terrains.filter(is_instance_valid)
	var active: int = 0
	var queued: int = 0
	var bytes: int = 0
	for terrain: Node in terrains:
		active += terrain.active_chunks
		queued += terrain.queued_chunks
		bytes += terrain.memory_bytes
	return {
		"physics_frame_time_ms": physics_ms,
		"physics_frame_avg_ms": tick_sum_ms / maxi(ticks, 1),
		"physics_frame_max_ms": tick_max_ms,
		"physics_frames_over_budget": slow_ticks,
		"render_frame_time_ms": render_ms,
		"chunk_generation_avg_ms": chunk_avg_ms,
		"chunk_generation_max_ms": chunk_max_ms,
		"chunks_generated": chunks_generated,
		"chunks_over_budget": slow_chunks,
		"active_chunk_count": active,
		"chunk_queue_length": queued,
		"voxel_memory_mb": bytes / BYTES_PER_MB,
		"static_memory_mb": OS.get_static_memory_usage() / BYTES_PER_MB,
		"object_count": int(Performance.get_monitor(Performance.OBJECT_NODE_COUNT)),
	}


func _end_frame() -> void:
	if _frame_usec:
		render_ms = (Time.get_ticks_usec() - _frame_usec) / 1000.0
		_frame_usec = 0


func _begin_tick() -> void:
	_end_step()
	_end_frame()


func _end_step() -> void:
	if not _stepping_since_usec:
		return
	var stepped: int = Time.get_ticks_usec() - _stepping_since_usec
	_stepping_since_usec = 0
	physics_ms = (_scripts_usec + stepped) / 1000.0
	ticks += 1
	tick_sum_ms += physics_ms
	tick_max_ms = maxf(tick_max_ms, physics_ms)
	if physics_ms > BUDGET_MS:
		slow_ticks += 1


func _begin_scripts() -> void:
	_begun_usec = Time.get_ticks_usec()


func _end_scripts() -> void:
	_stepping_since_usec = Time.get_ticks_usec()
	_scripts_usec = _stepping_since_usec - _begun_usec


## Calls back at its place in the order of a tick.
class Probe:
	extends Node
	var _call: Callable

	func _init(order: int, to_call: Callable) -> void:
		_call = to_call
		process_physics_priority = order
		process_mode = Node.PROCESS_MODE_ALWAYS

	func _physics_process(_delta: float) -> void:
		_call.call()
