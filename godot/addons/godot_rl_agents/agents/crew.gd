extends RefCounted
## All agents of the game, by who controls them: a trainer, an expert who is recorded, people.

## The controllers' ControlModes.
enum Mode { INHERIT, HUMAN, TRAINING, ONNX, DEMOS }

const Roster := preload("roster.gd")
const Demos := preload("../demos/demos.gd")
const GROUP: StringName = &"AGENT"
const HEURISTICS: Dictionary[Mode, String] = {
	Mode.HUMAN: "human", Mode.TRAINING: "model", Mode.DEMOS: "demo_record"
}

## Those whom the trainer plays.
var roster: Roster = Roster.new()
## Those whose expert is recorded.
var demos: Demos = Demos.new()
## Whether somebody is to be played by a trainer.
var wants_trainer: bool = false

var _tree: SceneTree
## Who controls those who do not say it themselves.
var _usual_mode: Mode
var _has_trainer: bool = true
var _people: Array[Node] = []
## The instances that have their place.
var _known: Dictionary[int, bool] = {}
var _is_muster_due: bool = true
var _has_told_of_onnx: bool = false


func _init(tree: SceneTree, usual_mode: Mode) -> void:
	_tree = tree
	_usual_mode = usual_mode


## Look who is here, if somebody came or went.
func muster() -> void:
	if not _is_muster_due and _tree.get_node_count_in_group(GROUP) == _known.size():
		return
	_is_muster_due = false
	var before: Dictionary[int, bool] = _known
	var trained: Array[Node] = []
	var recorded: Array[Node] = []
	_known = {}
	_people = []
	for node: Node in _tree.get_nodes_in_group(GROUP):
		var mode: Mode = _mode_of(node)
		_known[node.get_instance_id()] = true
		if node.get_instance_id() not in before:
			_employ(node, mode)
		match mode:
			Mode.TRAINING:
				trained.append(node)
			Mode.DEMOS:
				recorded.append(node)
			_:
				_people.append(node)
	roster.muster(trained)
	demos.muster(recorded)
	wants_trainer = not trained.is_empty()


## There is no trainer: people control those whom it would have played.
func dismiss_trainer() -> void:
	_has_trainer = false
	_is_muster_due = true
	_known = {}
	muster()


## A tick begins; now and then people's episodes are called over.
func tend(is_decision: bool) -> void:
	demos.tick()
	if is_decision:
		for node: Node in _people:
			if node.get_done():
				node.set_done_false()
			if "_rl_episode" in node:
				node.truncated = false
				node._rl_episode.play()


## Who is to control it.
func _wish_of(node: Node) -> Mode:
	var wish: Mode = node.control_mode if "control_mode" in node else Mode.INHERIT
	return _usual_mode if wish == Mode.INHERIT else wish


## Who can.
func _mode_of(node: Node) -> Mode:
	var wish: Mode = _wish_of(node)
	var is_possible: bool = wish == Mode.DEMOS or (wish == Mode.TRAINING and _has_trainer)
	return wish if is_possible else Mode.HUMAN


## Somebody new is here.
func _employ(node: Node, mode: Mode) -> void:
	if _wish_of(node) == Mode.ONNX and not _has_told_of_onnx:
		_has_told_of_onnx = true
		push_error("Godot RL Agents: there is no ONNX runtime in this addon yet; people play")
	node.set_heuristic(HEURISTICS[mode])
	if "_rl_episode" in node and mode != Mode.TRAINING:
		node._rl_episode.restart(roster.game_seed)
	if not node.tree_exiting.is_connected(_on_exit):
		node.tree_exiting.connect(_on_exit)


func _on_exit() -> void:
	_is_muster_due = true
