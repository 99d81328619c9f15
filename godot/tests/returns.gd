extends SceneTree
## The returns of a game whose agents are played by policies, without a trainer.
##
## Run as `godot --headless --path godot --fixed-fps 60 -s res://tests/returns.gd
## --scene=res://examples/orchard/orchard.tscn --onnx_model_path=… --episodes=10`. Prints one JSON
## object: by agent, the returns of its first episodes.

const MOST_TICKS: int = 400000

var _scene: String = ""
var _wanted: int = 1
var _ticks: int = 0
var _sync: Sync
var _returns: Dictionary[int, Array] = {}


func _initialize() -> void:
	for word: String in OS.get_cmdline_args():
		match word.get_slice("=", 0):
			"--scene":
				_scene = word.get_slice("=", 1)
			"--episodes":
				_wanted = word.get_slice("=", 1).to_int()
	var scene: Node = (load(_scene) as PackedScene).instantiate()
	root.add_child(scene)
	_sync = scene.find_children("*", "Sync", true, false)[0]


func _physics_process(_delta: float) -> bool:
	_ticks += 1
	var is_done: bool = _ticks > 1
	for player: RLAddon.InferenceAgent in _sync._rl_lockstep.groups.policies.players():
		var found: Array = _returns.get_or_add(player.agent.id, [])
		if player.episodes > found.size():
			found.append(player.last_return)
		is_done = is_done and found.size() >= _wanted
	is_done = is_done and not _returns.is_empty()
	if not is_done and _ticks < MOST_TICKS:
		return false
	print(JSON.stringify(_returns.values()))
	return true
