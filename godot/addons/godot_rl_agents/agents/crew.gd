extends RefCounted
## All agents of the game, by who controls them: a trainer, an ONNX model, an expert who is
## recorded, people.

## The controllers' ControlModes.
enum Mode { INHERIT, HUMAN, TRAINING, ONNX, DEMOS }

const GROUP: StringName = &"AGENT"
const HEURISTICS: Dictionary[RLAddon.Crew.Mode, String] = {
	Mode.HUMAN: "human", Mode.TRAINING: "model", Mode.ONNX: "model", Mode.DEMOS: "demo_record"
}

## Those whom the trainer plays.
var roster: RLAddon.Roster = RLAddon.Roster.new()
## Those whose expert is recorded.
var demos: RLAddon.Demos = RLAddon.Demos.new()
## Those whom ONNX models play.
var policies: RLAddon.Policies
## Those whom people play.
var people: Array[Node] = []
## Whether somebody is to be played by a trainer.
var wants_trainer: bool = false

var _tree: SceneTree
## Who controls those who do not say it themselves.
var _usual_mode: RLAddon.Crew.Mode
var _has_trainer: bool = true
## The instances that have their place, and who controls them.
var _known: Dictionary[int, RLAddon.Crew.Mode] = {}
var _is_muster_due: bool = true


func _init(
	tree: SceneTree, usual_mode: RLAddon.Crew.Mode, usual_model: String, game_seed: int
) -> void:
	_tree = tree
	_usual_mode = usual_mode
	roster.game_seed = game_seed
	# The seeds of those whom a trainer plays do not depend on who else is there.
	policies = RLAddon.Policies.new(
		RLAddon.Roster.MOST_AGENTS if usual_mode == Mode.TRAINING else 0
	)
	policies.game_seed = game_seed
	policies.usual_path = usual_model


## Somebody else is to control those who do not say it themselves.
func change_mode(usual_mode: RLAddon.Crew.Mode) -> void:
	_usual_mode = usual_mode
	_is_muster_due = true


## Another model is to play those who do not name one, or the same is to be read again.
func change_model(usual_model: String) -> void:
	policies.usual_path = usual_model
	policies.reopen()
	_is_muster_due = true


## Look who is here, if somebody came or went, or is to be controlled by another.
func muster() -> void:
	_is_muster_due = _is_muster_due or policies.has_lost
	if not _is_muster_due and _tree.get_node_count_in_group(GROUP) == _known.size():
		return
	_is_muster_due = false
	var before: Dictionary[int, RLAddon.Crew.Mode] = _known
	var trained: Array[Node] = []
	var recorded: Array[Node] = []
	var played: Dictionary[int, bool] = {}
	_known = {}
	people = []
	for node: Node in _tree.get_nodes_in_group(GROUP):
		var mode: RLAddon.Crew.Mode = _mode_of(node)
		_known[node.get_instance_id()] = mode
		if before.get(node.get_instance_id()) != mode:
			_employ(node, mode)
		match mode:
			Mode.TRAINING:
				trained.append(node)
			Mode.DEMOS:
				recorded.append(node)
			Mode.ONNX:
				played[node.get_instance_id()] = true
			_:
				people.append(node)
	roster.muster(trained)
	demos.muster(recorded)
	policies.keep(played)
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
		for node: Node in people:
			if node.get_done():
				node.set_done_false()
			if "_rl_episode" in node:
				node.truncated = false
				node._rl_episode.play()


## Whether the game should have a tick to carry out resets.
func awaits_reset() -> bool:
	var awaits: bool = roster.awaits_reset()
	return policies.awaits_reset() or awaits


## Who is to control it.
func _wish_of(node: Node) -> RLAddon.Crew.Mode:
	var wish: RLAddon.Crew.Mode = node.control_mode if "control_mode" in node else Mode.INHERIT
	return _usual_mode if wish == Mode.INHERIT else wish


## Who can.
func _mode_of(node: Node) -> RLAddon.Crew.Mode:
	var wish: RLAddon.Crew.Mode = _wish_of(node)
	match wish:
		Mode.TRAINING:
			return wish if _has_trainer else Mode.HUMAN
		Mode.ONNX:
			return wish if policies.admit(node) else Mode.HUMAN
	return wish


## Somebody is new here, or is now controlled by another.
func _employ(node: Node, mode: RLAddon.Crew.Mode) -> void:
	node.set_heuristic(HEURISTICS[mode])
	if "_rl_episode" in node and mode in [Mode.HUMAN, Mode.DEMOS]:
		node._rl_episode.restart(roster.game_seed)
	if not node.tree_exiting.is_connected(_on_change):
		node.tree_exiting.connect(_on_change)
		if node.has_signal(&"model_changed"):
			node.connect(&"control_changed", _on_change)
			node.connect(&"model_changed", _on_model_changed.bind(node))


func _on_change() -> void:
	_is_muster_due = true


func _on_model_changed(node: Node) -> void:
	policies.reopen(node)
	_is_muster_due = true
