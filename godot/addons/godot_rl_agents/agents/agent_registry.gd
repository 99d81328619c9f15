extends RefCounted
## The agents that a trainer controls, in protocol order, with those that joined or left.

const MOST_AGENTS: int = 65536

## Known to the trainer.
var agents: Array[RLAddon.Agent] = []
## Not yet announced to the trainer.
var joined: Array[RLAddon.Agent] = []
## Whether the trainer supports joining, leaving and episode ends as they happen (`binary1`).
var is_open: bool = false
## The seed from which the episodes' seeds are derived.
var game_seed: int = 0
## The total size of all actions.
var action_width: int = 0
## Whether any agent has an action mask.
var has_masks: bool = false
## The first problem with an agent, or "".
var problem: String = ""

var _next_id: int = 0
var _by_node: Dictionary[int, RLAddon.Agent] = {}
## Agents that an older trainer cannot take.
var _refused: Dictionary[int, bool] = {}


## Update the list to these nodes.
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


## Announce all agents to the trainer; earlier rewards do not count.
func introduce() -> void:
	for agent: RLAddon.Agent in joined:
		agent.start_over()
	agents.append_array(joined)
	joined.clear()
	for agent: RLAddon.Agent in agents:
		agent.episode.keeps_ends = is_open
	_count_actions()


## Everything has been reported: continue with the agents that are present.
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


## The nodes of the agents present, in protocol order.
func nodes() -> Array[Node]:
	var found: Array[Node] = []
	for agent: RLAddon.Agent in agents:
		if not agent.is_gone:
			found.append(agent.node)
	return found


## Restart all agents at the first episode of this seed.
func reseed(new_seed: int) -> void:
	game_seed = new_seed
	for agent: RLAddon.Agent in agents + joined:
		agent.episode.restart(game_seed)


## Start the next episode of all agents, or the first of a new seed; returns the nodes to reset.
## The parameters are those of the agents in their order, or empty.
func request_reset(new_seed: Variant, parameters: Array) -> Array[Node]:
	if new_seed != null:
		reseed(new_seed)
	for i: int in parameters.size():
		agents[i].episode.next_parameters = null if agents[i].is_gone else parameters[i]
	var found: Array[Node] = []
	for agent: RLAddon.Agent in agents + joined:
		agent.episode.begin_next()
		agent.episode.start_parameters()
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


## Whether the game needs one more tick to carry out resets.
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
	RLAddon.ParameterStore.first_id = agents[0].id if agents else 0
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
		RLAddon.ParameterStore.welcome(node)
	_by_node[node.get_instance_id()] = agent


func _refuse(node: Node) -> void:
	if node.get_instance_id() not in _refused:
		_refused[node.get_instance_id()] = true
		push_warning(
			(
				"Godot RL Agents: %s joined, but this trainer does not support joining agents"
				% node.get_path()
			)
		)


## For an older trainer: a new agent replaces one that left.
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
