class_name PhysicsStressController
extends FeatureAgent
## Spawns boxes (0 to 10), throws those near the middle (a vector) and starts particles; sees 7
## numbers: the times of tick and frame, the memory, how many boxes there are and are awake, and
## their layers.

var perf_monitor: VoxelPerformanceMonitor


func get_obs() -> Dictionary:
	var yard: StressYard = island
	var most: float = StressYard.MOST_BODIES
	return {
		"obs":
		[
			minf(perf_monitor.physics_ms / VoxelPerformanceMonitor.BUDGET_MS, 10.0),
			minf(perf_monitor.render_ms / VoxelPerformanceMonitor.BUDGET_MS, 10.0),
			OS.get_static_memory_usage() / VoxelPerformanceMonitor.BYTES_PER_MB / 2048.0,
			yard.bodies.size() / most,
			yard.awake / most,
			yard.on_layers[0] / most,
			yard.on_layers[1] / most,
		]
	}


func get_info() -> Dictionary:
	if summary:
		return summary
	var seen: Array = get_obs()["obs"]
	return {"success": false, "performance": [seen[0], seen[1], 0.0]}


func get_action_space() -> Dictionary:
	return {
		"spawn": {"size": 11, "action_type": "discrete"},
		"throw": {"size": 3, "action_type": "continuous"},
		"particles": {"size": 2, "action_type": "discrete"},
	}


func set_action(action: Variant) -> void:
	super(action)
	var yard: StressYard = island
	yard.spawn(int(action["spawn"]))
	var force: Vector3 = Vector3(
		axis(action, "throw", 0), axis(action, "throw", 1), axis(action, "throw", 2)
	)
	yard.throw_bodies(force.limit_length())
	if int(action["particles"]):
		yard.burst()
