class_name SceneEndpoints
extends RefCounted
## The endpoints for scenes and performance.

const FEATURES: String = "res://scenes/features"
const MONITORS: Dictionary[String, Performance.Monitor] = {
	"process_time": Performance.TIME_PROCESS,
	"physics_process_time": Performance.TIME_PHYSICS_PROCESS,
	"object_count": Performance.OBJECT_COUNT,
	"resource_count": Performance.OBJECT_RESOURCE_COUNT,
	"node_count": Performance.OBJECT_NODE_COUNT,
	"orphan_node_count": Performance.OBJECT_ORPHAN_NODE_COUNT,
	"active_physics_objects": Performance.PHYSICS_3D_ACTIVE_OBJECTS,
	"draw_calls": Performance.RENDER_TOTAL_DRAW_CALLS_IN_FRAME,
	"primitives": Performance.RENDER_TOTAL_PRIMITIVES_IN_FRAME,
}

var _api: HttpApi
## The scene that is leaving, until another is there.
var _leaving: WeakRef
var _changed_msec: int = 0


func _init(api: HttpApi) -> void:
	_api = api


## Whether a scene was asked for that is not there yet.
func is_changing() -> bool:
	if not _leaving:
		return false
	var scene: Node = _tree().current_scene
	if scene and scene != _leaving.get_ref() and scene.is_node_ready():
		_leaving = null
	elif Time.get_ticks_msec() - _changed_msec > HttpApi.COMMAND_MSEC:
		_leaving = null
	return _leaving != null


func status(connection: HttpConnection) -> void:
	var told: Dictionary = {
		"status": "loading" if _leaving else "running",
		"engine": Engine.get_version_info()["string"],
		"environment": _api.whitelist.environment,
		"uptime_sec": Time.get_ticks_msec() / 1000.0,
		"ticks_per_second": roundi(Engine.physics_ticks_per_second / Engine.time_scale),
		"headset": VRRig.has_headset(),
		"trainer": "http" if _api.trainer else "none",
	}
	connection.answer(200, told.merged(_describe()))


func current(connection: HttpConnection) -> void:
	connection.answer(200, _describe())


func change(connection: HttpConnection) -> void:
	var path: String = _read_path(connection)
	if path:
		_change(path)
		connection.answer(
			200, {"status": "loading", "scene": path, "message": "scene change started"}
		)


func reload(connection: HttpConnection) -> void:
	var path: String = _describe()["scene_path"]
	if not path:
		connection.fail(404, "there is no scene to reload")
		return
	_change(path)
	connection.answer(
		200, {"status": "reloading", "scene": path, "message": "scene reload started"}
	)


func validate(connection: HttpConnection) -> void:
	var path: String = _read_path(connection, false)
	if not path:
		return
	var told: Dictionary = {"valid": false, "errors": [], "warnings": [], "scene_info": {}}
	var packed: PackedScene = null
	if ResourceLoader.exists(path, "PackedScene"):
		packed = load(path) as PackedScene
	if not packed or not packed.can_instantiate():
		told["errors"].append("not found" if not packed else "cannot be instantiated")
	else:
		var state: SceneState = packed.get_state()
		var names: Array = range(state.get_node_count()).map(state.get_node_name)
		told["valid"] = true
		told["scene_info"] = {
			"name": path.get_file().get_basename(),
			"path": path,
			"root_name": names[0],
			"root_type": state.get_node_type(0),
			"node_count": names.size(),
		}
		if &"Sync" not in names:
			told["warnings"].append("no node is called Sync; the scene may have no agents")
	connection.answer(200, told)


func list(connection: HttpConnection) -> void:
	var directory: String = connection.request.query.get("dir", FEATURES)
	directory += "" if directory.ends_with("/") else "/"
	var problem: String = SceneWhitelist.problem_of(directory, "/")
	if problem:
		connection.fail(400, "dir: " + problem)
		return
	var scenes: Array = []
	for path: String in _api.whitelist.scenes_in(directory):
		scenes.append({"name": path.get_file().get_basename(), "path": path})
	connection.answer(200, {"directory": directory, "count": scenes.size(), "scenes": scenes})


func performance(connection: HttpConnection) -> void:
	var engine: Dictionary = {
		"fps": Engine.get_frames_per_second(),
		"frames": Engine.get_process_frames(),
		"physics_ticks": Engine.get_physics_frames(),
	}
	for key: String in MONITORS:
		engine[key] = Performance.get_monitor(MONITORS[key])
	var memory: Dictionary = {
		"static_memory_usage": OS.get_static_memory_usage(),
		"static_memory_peak": OS.get_static_memory_peak_usage(),
		"video_memory": Performance.get_monitor(Performance.RENDER_VIDEO_MEM_USED),
		"message_buffer_peak": Performance.get_monitor(Performance.MEMORY_MESSAGE_BUFFER_MAX),
	}
	var told: Dictionary = {
		"timestamp": Time.get_unix_time_from_system(), "memory": memory, "engine": engine
	}
	var scene: Node = _tree().current_scene
	if scene is FeatureScene:
		told["scene"] = scene.get_metrics()
	connection.answer(200, told)


func _describe() -> Dictionary:
	var scene: Node = _tree().current_scene
	return {
		"scene_name": str(scene.name) if scene else "",
		"scene_path": scene.scene_file_path if scene else "",
		"status": "loaded" if scene else "no_scene",
	}


func _change(path: String) -> void:
	_leaving = weakref(_tree().current_scene)
	_changed_msec = Time.get_ticks_msec()
	_api.needs_frames = true
	# A paused tree would keep waiting for the trainer.
	_tree().paused = false
	_tree().change_scene_to_file.call_deferred(path)


## The allowed scene that the body names; "" if it was refused.
func _read_path(connection: HttpConnection, must_exist: bool = true) -> String:
	var body: Dictionary = connection.request.json()
	var path: Variant = body.get("scene_path")
	var problem: String = connection.request.problem
	if not problem and SceneWhitelist.problem_of(path):
		problem = "scene_path: " + SceneWhitelist.problem_of(path)
	if problem:
		connection.fail(400, problem)
	elif not _api.whitelist.allows(path):
		connection.fail(403, "this scene is not on the whitelist", {"scene_path": path})
	elif must_exist and not ResourceLoader.exists(path, "PackedScene"):
		connection.fail(404, "no such scene", {"scene_path": path})
	else:
		return path
	return ""


func _tree() -> SceneTree:
	return Engine.get_main_loop() as SceneTree
