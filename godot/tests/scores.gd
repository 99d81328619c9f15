extends SceneTree
## The scores of a game whose agents play by themselves, such as with `--onnx_model_path=…`.
##
## Run as `godot --headless --path godot --fixed-fps 60 -s res://tests/scores.gd
## --scene=res://examples/orchard/orchard.tscn --ticks=3000`. Prints one JSON object: the scores of
## each agent's episodes.

var _scene: String = ""
var _ticks_left: int = 0
var _ages: Dictionary[Node, int] = {}
var _scores: Dictionary[Node, Array] = {}


func _initialize() -> void:
	for word: String in OS.get_cmdline_args():
		match word.get_slice("=", 0):
			"--scene":
				_scene = word.get_slice("=", 1)
			"--ticks":
				_ticks_left = word.get_slice("=", 1).to_int()
	root.add_child((load(_scene) as PackedScene).instantiate())


func _physics_process(_delta: float) -> bool:
	for agent: Node in get_nodes_in_group(&"AGENT"):
		var age: int = agent.get(&"n_steps")
		if age < _ages.get(agent, 0):
			_scores[agent].append(agent.call(&"get_info")["score"])
		elif agent not in _ages:
			_scores[agent] = []
		_ages[agent] = age
	_ticks_left -= 1
	if _ticks_left > 0:
		return false
	print(JSON.stringify(_scores.values()))
	return true
