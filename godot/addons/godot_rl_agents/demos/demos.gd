extends RefCounted
## All agents whose experts are recorded, and the files into which that goes.

const DemoFile := preload("demo_file.gd")
const Demonstrator := preload("demonstrator.gd")

var _demonstrators: Dictionary[int, Demonstrator] = {}
var _files: Dictionary[String, DemoFile] = {}


## These nodes are in the game now.
func muster(nodes: Array[Node]) -> void:
	var present: Dictionary[int, Demonstrator] = {}
	for node: Node in nodes:
		var number: int = node.get_instance_id()
		present[number] = _demonstrators.get(number)
		if not present[number]:
			present[number] = Demonstrator.new(node, _file(node))
	_demonstrators = present


func tick() -> void:
	for demonstrator: Demonstrator in _demonstrators.values():
		demonstrator.tick()


## The key that removes the last episode, once for agents that share a file.
func take_input(event: InputEvent) -> void:
	var files: Array[DemoFile] = []
	for demonstrator: Demonstrator in _demonstrators.values():
		if demonstrator.is_remove_key(event) and demonstrator.file not in files:
			files.append(demonstrator.file)
	for file: DemoFile in files:
		file.remove_last()


func _file(node: Node) -> DemoFile:
	var path: String = node.expert_demo_save_path
	if not path:
		path = "user://expert_demos.json"
		push_error(
			"Godot RL Agents: %s has no expert_demo_save_path; it is %s" % [node.get_path(), path]
		)
	if path not in _files:
		_files[path] = DemoFile.new(path)
	return _files[path]
