class_name VoxelStressTestController
extends FeatureAgent
## Looks for what makes a voxel world slow: `obs` has the 4 figures of VoxelPerformanceMonitor,
## `world` 7 more; it runs in a direction with a speed, and jumps ahead.

const MAX_SPEED_MPS: float = 20.0
const MAX_TELEPORT_M: float = 64.0

## Whether to be rewarded for problems; else they cost.
var chaos_mode: bool = true
var direction: Vector2 = Vector2.ZERO
var speed_mps: float = 0.0
var teleport_m: float = 0.0
var perf_monitor: VoxelPerformanceMonitor


func get_obs() -> Dictionary:
	var world: VoxelWorld = island
	var terrain: VoxelTerrain = world.terrain
	var memory_mb: float = terrain.memory_bytes / VoxelPerformanceMonitor.BYTES_PER_MB
	return {
		"obs":
		[
			minf(perf_monitor.physics_ms / VoxelPerformanceMonitor.BUDGET_MS, 10.0),
			minf(perf_monitor.chunk_avg_ms / VoxelPerformanceMonitor.CHUNK_BUDGET_MS, 10.0),
			terrain.active_chunks / float(VoxelPerformanceMonitor.MOST_CHUNKS),
			memory_mb / VoxelPerformanceMonitor.MEMORY_BUDGET_MB,
		],
		"world":
		[
			terrain.queued_chunks / 256.0,
			world.velocity.x / MAX_SPEED_MPS,
			world.velocity.y / MAX_SPEED_MPS,
			world.teleport_wait(),
			1.0 if world.is_over_hole else 0.0,
			minf(terrain.most_faces / 4096.0, 4.0),
			minf(terrain.last_faces / 4096.0, 4.0),
		],
	}


func get_info() -> Dictionary:
	if summary:
		return summary
	var seen: Array = get_obs()["obs"]
	return {"success": false, "performance": [seen[0], perf_monitor.render_ms / 11.11, seen[2]]}


func get_action_space() -> Dictionary:
	return {
		"move_direction": {"size": 2, "action_type": "continuous"},
		"move_speed": {"size": 1, "action_type": "continuous"},
		"teleport_distance": {"size": 1, "action_type": "continuous"},
	}


func set_action(action: Variant) -> void:
	super(action)
	direction = Vector2(axis(action, "move_direction", 0), axis(action, "move_direction", 1))
	speed_mps = 0.5 * (axis(action, "move_speed") + 1.0) * MAX_SPEED_MPS
	teleport_m = maxf(axis(action, "teleport_distance"), 0.0) * MAX_TELEPORT_M
