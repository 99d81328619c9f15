extends RefCounted
## The agents that a trainer plays, in the order of the wire: who is there, who came, who is gone.

const MOST_AGENTS: int = 65536

## Those whom the trainer knows.
var agents: Array[RLAddon.Agent] = []
## Those of whom it has not been told.
var joined: Array[RLAddon.Agent] = []
## Whether the trainer knows of ends as they happen, of joining and leaving; older ones do not.
var is_open: bool = false
## What the episodes' seeds are made from.
var game_seed: int = 0
## How many numbers say what all of them do.
var action_width: int = 0
## Whether somebody's choices are restricted.
var has_masks: bool = false
## What is wrong with an agent, or "".
var problem: String = ""

var _next_id: int = 0
var _by_node: Dictionary[int, RLAddon.Agent] = {}
## Those for whom an older trainer has no place.
var _refused: Dictionary[int, bool] = {}


## These nodes are in the game now.
func refresh(nodes_here: Array) -> void:
	var present: Dictionary[int, bool] = {}
	for node: Node in nodes_here:
		present[node.get_instance_id()] = true
	for number: int in _by_node.keys():
		if number not in present:
			_remove(_by_node[number])
			_by_node.erase(number)
	for node: Node in nodes_here:
		if node.get_instance_id() not in _by_node:
			_join(node)


## The trainer is told of all who are here; what happened to them before does not count.
func introduce() -> void:
	for agent: RLAddon.Agent in joined:
		agent.start_over()
	agents.append_array(joined)
	joined.clear()
	for agent: RLAddon.Agent in agents:
		agent.episode.keeps_ends = is_open
	_count_actions()


## Everyone has been told of everything: go on with those who are here.
func finish_step() -> void:
	if joined:
		introduce()
	var somebody_left: bool = false
	for agent: RLAddon.Agent in agents:
		agent.episode.clear()
		if agent.is_gone:
			somebody_left = true
	if somebody_left:
		agents.assign(agents.filter(_is_here))
		_count_actions()


## The nodes of those that are here, in the order of the wire.
func nodes() -> Array[Node]:
	var found: Array[Node] = []
	for agent: RLAddon.Agent in agents:
		if not agent.is_gone:
			found.append(agent.node)
	return found


## All begin at the first episode of a game with this seed.
func reseed(new_seed: int) -> void:
	game_seed = new_seed
	for agent: RLAddon.Agent in agents + joined:
		agent.episode.restart(game_seed)


## All begin their next episode, or the first one of a game with this seed; returns the nodes that
## must be reset.
func request_reset(new_seed: Variant) -> Array[Node]:
	if new_seed != null:
		reseed(new_seed)
	var found: Array[Node] = []
	for agent: RLAddon.Agent in agents + joined:
		agent.episode.begin_next()
		if not agent.is_gone:
			found.append(agent.node)
	return found


## Call a method of every agent; null where there is none.
func call_all(method: String) -> Array:
	var returns: Array = []
	for agent: RLAddon.Agent in agents:
		var can: bool = not agent.is_gone and agent.node.has_method(method)
		if not can and not agent.is_gone:
			push_error("Godot RL Agents: %s has no method %s" % [agent.name, method])
		returns.append(agent.node.call(method) if can else null)
	return returns


func start_over() -> void:
	for agent: RLAddon.Agent in agents + joined:
		agent.start_over()


## Whether the game should have a tick to carry out resets.
func awaits_reset() -> bool:
	var awaits: bool = false
	for agent: RLAddon.Agent in agents:
		if agent.awaits_reset():
			awaits = true
	return awaits


func take_rewards() -> void:
	for agent: RLAddon.Agent in agents:
		if not agent.is_gone:
			agent.episode.take_reward()


func _count_actions() -> void:
	action_width = 0
	has_masks = false
	for agent: RLAddon.Agent in agents:
		action_width += agent.spaces.action_width
		has_masks = has_masks or not agent.spaces.mask_sizes.is_empty()


func _is_here(agent: RLAddon.Agent) -> bool:
	return not agent.is_gone


func _join(node: Node) -> void:
	var agent: RLAddon.Agent = RLAddon.Agent.new(node, _next_id, game_seed)
	if agent.problem:
		problem = "%s: %s" % [agent.name, agent.problem]
	elif agents.size() + joined.size() >= MOST_AGENTS:
		problem = "more than %d agents" % MOST_AGENTS
	if agents and not is_open:
		agent = _substitute(agent)
		if not agent:
			_refuse(node)
			return
	else:
		_next_id += 1
		joined.append(agent)
	_by_node[node.get_instance_id()] = agent


func _refuse(node: Node) -> void:
	if node.get_instance_id() not in _refused:
		_refused[node.get_instance_id()] = true
		push_warning(
			"Godot RL Agents: %s joined, but this trainer has no place for it" % node.get_path()
		)


## For an older trainer: the one who came takes the place of one who is gone.
func _substitute(fresh: RLAddon.Agent) -> RLAddon.Agent:
	for agent: RLAddon.Agent in agents:
		if agent.is_gone and agent.policy == fresh.policy and agent.spaces.equals(fresh.spaces):
			fresh.node.tree_exiting.disconnect(fresh._on_exit)
			agent.replace(fresh.node)
			return agent
	return null


func _remove(agent: RLAddon.Agent) -> void:
	agent.part()
	joined.erase(agent)
