extends RefCounted
## All agents that record demonstrations, and their files.

var _recorders: Dictionary[int, RLAddon.DemoRecorder] = {}
var _files: Dictionary[String, RLAddon.DemoFile] = {}


## Update the list to these nodes.
func refresh(nodes: Array[Node]) -> void:
	var present: Dictionary[int, RLAddon.DemoRecorder] = {}
	for node: Node in nodes:
		var number: int = node.get_instance_id()
		present[number] = _recorders.get(number)
		if not present[number]:
			present[number] = RLAddon.DemoRecorder.new(node, _file(node))
	_recorders = present


## All recorded episodes, each as `[observations, actions]`.
func recorded() -> Array:
	var found: Array = []
	for file: RLAddon.DemoFile in _files.values():
		found.append_array(file.episodes())
	return found


## The current episode of the first recorder.
func current() -> Array:
	return _recorders.values()[0].current() if _recorders else []


func tick() -> void:
	for recorder: RLAddon.DemoRecorder in _recorders.values():
		recorder.tick()


## The key that removes the last episode, once for agents that share a file.
func take_input(event: InputEvent) -> void:
	var files: Array[RLAddon.DemoFile] = []
	for recorder: RLAddon.DemoRecorder in _recorders.values():
		if recorder.is_remove_key(event) and recorder.file not in files:
			files.append(recorder.file)
	for file: RLAddon.DemoFile in files:
		file.remove_last()


func _file(node: Node) -> RLAddon.DemoFile:
	var path: String = node.expert_demo_save_path
	if not path:
		path = "user://expert_demos.json"
		push_error(
			"Godot RL Agents: %s has no expert_demo_save_path; using %s" % [node.get_path(), path]
		)
	if path not in _files:
		_files[path] = RLAddon.DemoFile.new(path)
	return _files[path]
