extends RefCounted
## All agents that ONNX models play, by model: Sync's, an agent's own, or one that the game loaded.

## What the episodes' seeds, and what is drawn, are made from.
var game_seed: int = 0
## Whether somebody cannot be played any longer.
var has_lost: bool = false

var _sync: Sync
## How a game's own Sync reads actions from outputs, if it has its own way.
var _extract: Callable
var _next_id: int = -1
## Those that play somebody.
var _policies: Array[RLAddon.Policy] = []
## What was opened, by its path, or by the model that a game gave.
var _opened: Dictionary[Variant, RLAddon.Policy] = {}
## By the node's instance.
var _players: Dictionary[int, RLAddon.InferenceAgent] = {}
## What could not play whom, by the node's instance.
var _refused: Dictionary[int, Variant] = {}
var _told: Dictionary[String, bool] = {}
## Let go while their threads were at work.
var _retired: Array[RLAddon.Policy] = []
var _ticks_left: int = 0
## Whether everyone's rewards are taken for this decision.
var _are_reckoned: bool = false


func _init(sync: Sync, has_own_extract: bool) -> void:
	_sync = sync
	if has_own_extract:
		_extract = sync._extract_action_dict


## All who are played.
func players() -> Array[RLAddon.InferenceAgent]:
	return _players.values()


## The models that were loaded from files, by path.
func models() -> Dictionary[String, ONNXModel]:
	var found: Dictionary[String, ONNXModel] = {}
	for source: Variant in _opened:
		if source is String and not _opened[source].problem:
			found[source] = ONNXModel.of(_opened[source].model)
	return found


## Who plays it.
func policy_of(player: RLAddon.InferenceAgent) -> RLAddon.Policy:
	for policy: RLAddon.Policy in _policies:
		if policy.model == player.model:
			return policy
	return null


## Let this node be played by its model; false, and it is said why, if that cannot be.
func admit(node: Node) -> bool:
	if _next_id < 0:
		# The seeds of those that a trainer controls do not depend on who else is there.
		var is_training: bool = _sync.control_mode == Sync.ControlModes.TRAINING
		_next_id = RLAddon.AgentRegistry.MOST_AGENTS if is_training else 0
	var number: int = node.get_instance_id()
	var source: Variant = _source_of(node)
	var player: RLAddon.InferenceAgent = _players.get(number)
	if number in _refused and is_same(_refused[number], source):
		return player != null
	if source not in _opened:
		_opened[source] = _open(source)
	var policy: RLAddon.Policy = _opened[source]
	if player and player.model == policy.model:
		return true
	var fresh: RLAddon.InferenceAgent = player
	if not fresh and not policy.problem:
		fresh = RLAddon.InferenceAgent.new(node, _next_id, game_seed)
	var problem: String = policy.problem if policy.problem else _appoint(fresh, policy)
	if problem:
		_refused[number] = source
		_tell(node, policy.name, problem, player != null)
		if fresh and not player:
			fresh.agent.release()
	elif not player:
		_players[number] = fresh
		_next_id += 1
	return number in _players


## Only these are here; whoever is not is let go, and so are models that play nobody.
func keep(nodes: Array) -> void:
	has_lost = false
	var present: Dictionary[int, bool] = {}
	for node: Node in nodes:
		present[node.get_instance_id()] = true
	for number: int in _players.keys():
		if number not in present:
			_dismiss(_players[number])
			_players.erase(number)
	var idle: Array[RLAddon.Policy] = _policies.filter(_plays_nobody)
	for policy: RLAddon.Policy in idle:
		_policies.erase(policy)
	_retired.assign((_retired + idle).filter(_is_at_work))
	for source: Variant in _opened.keys():
		if _opened[source] not in _policies:
			_opened.erase(source)
	for number: int in _refused.keys():
		if not is_instance_id_valid(number):
			_refused.erase(number)


## The model of this node, or Sync's, is another one or was changed: it is opened again.
func reopen(node: Node = null) -> void:
	var source: Variant = _source_of(node) if node else _sync.onnx_model_path
	_opened.erase(source)
	if node:
		_refused.erase(node.get_instance_id())
	else:
		_refused.clear()
	for told: String in _told.keys():
		if source is String and told.begins_with(source):
			_told.erase(told)


## Whether the game should have a tick to carry out resets; once for every reset.
func awaits_reset() -> bool:
	var awaits: bool = false
	for player: RLAddon.InferenceAgent in _players.values():
		awaits = player.agent.awaits_reset() or awaits
	return awaits


## A tick begins: whether decisions are due, as they are every `action_repeat` ticks. Resets get a
## tick first.
func is_due(action_repeat: int) -> bool:
	_ticks_left -= 1
	if _ticks_left > 0 or awaits_reset():
		return false
	if not _are_reckoned:
		_reckon()
		if awaits_reset():
			return false
	_ticks_left = action_repeat
	return not _players.is_empty()


## All see, then all act.
func decide() -> void:
	if not _are_reckoned:
		_reckon()
	_are_reckoned = false
	for policy: RLAddon.Policy in _policies:
		policy.observe(_sync)
	for policy: RLAddon.Policy in _policies:
		policy.think(_sync.inference_on_threads)
	for policy: RLAddon.Policy in _policies:
		policy.act(_sync, _extract)
		for player: RLAddon.InferenceAgent in policy.lost:
			_lose(player, policy)
		policy.lost.clear()


func _reckon() -> void:
	_are_reckoned = true
	for player: RLAddon.InferenceAgent in _players.values():
		player.reckon()
	_sync._reset_agents_if_done(_sync.agents_inference)
	for player: RLAddon.InferenceAgent in _players.values():
		if player.is_over:
			player.agent.episode.forget_end()


## What is to play it: a model that the game gave, or a path.
func _source_of(node: Node) -> Variant:
	var given: Variant = node.get("onnx_model")
	if given is ONNXModel:
		return given.model
	if given is GodotRLModel:
		return given
	var path: String = str(node.get("onnx_model_path")) if "onnx_model_path" in node else ""
	path = path if path else _sync.onnx_model_path
	if path.begins_with("uid://") and ResourceUID.has_id(ResourceUID.text_to_id(path)):
		return ResourceUID.get_id_path(ResourceUID.text_to_id(path))
	return path


func _open(source: Variant) -> RLAddon.Policy:
	if source is GodotRLModel:
		return RLAddon.Policy.new(source, "the model that the game gave it")
	var model: GodotRLModel = GodotRLModel.new()
	model.random.seed = hash([game_seed, source])
	if source:
		model.load(source)
	else:
		model.error = "there is no onnx_model_path, neither its own nor Sync's"
	return RLAddon.Policy.new(model, source if source else "a model")


## Hand an agent to a policy; what does not fit, or "".
func _appoint(player: RLAddon.InferenceAgent, policy: RLAddon.Policy) -> String:
	var before: RLAddon.Policy = policy_of(player)
	var problem: String = player.take(policy.model)
	if not problem:
		if before:
			before.remove(player)
		if policy not in _policies:
			_policies.append(policy)
		policy.players.append(player)
	return problem


func _dismiss(player: RLAddon.InferenceAgent) -> void:
	policy_of(player).remove(player)
	player.model = null
	player.agent.release()


func _lose(player: RLAddon.InferenceAgent, policy: RLAddon.Policy) -> void:
	var node: Node = player.agent.node
	_refused[node.get_instance_id()] = _source_of(node)
	_tell(node, policy.name, policy.lost[player], false)
	_players.erase(node.get_instance_id())
	_dismiss(player)
	has_lost = true


## Once for every model and every reason.
func _tell(node: Node, model: String, problem: String, is_still_played: bool) -> void:
	if "%s: %s" % [model, problem] in _told:
		return
	_told["%s: %s" % [model, problem]] = true
	var instead: String = (
		"the previous model stays in use" if is_still_played else "people control it"
	)
	push_error(
		(
			"Godot RL Agents: %s cannot be played by %s: %s; %s"
			% [node.get_path(), model, problem.trim_prefix(model + ": "), instead]
		)
	)


static func _plays_nobody(policy: RLAddon.Policy) -> bool:
	return policy.players.is_empty()


static func _is_at_work(policy: RLAddon.Policy) -> bool:
	return policy.model.is_busy()
