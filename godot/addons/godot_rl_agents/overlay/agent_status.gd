extends RefCounted
## One agent's data for the overlay: what controls it, observation, action, reward and value.

const NOTHING: String = "–"

var name: String
var policy: String
## What controls it, as text.
var by: String
var seen: Dictionary = {}
## By key: the index of a choice, or numbers.
var action: Dictionary = {}
var reward: float = 0.0
var episode: String = NOTHING
## The value its policy predicts.
var value: String = NOTHING
## What it earned in this episode so far, and in the last one.
var returns: String = NOTHING
## What the model's file says about itself.
var about: String = NOTHING
## Inference time, and the number of agents in the batch.
var thought: String = NOTHING


## All agents, in the overlay's order.
static func nodes(groups: RLAddon.AgentGroups) -> Array[Node]:
	var found: Array[Node] = []
	for player: RLAddon.InferenceAgent in groups.policies.players():
		found.append(player.agent.node)
	for agent: RLAddon.Agent in groups.registry.agents:
		if not agent.is_gone:
			found.append(agent.node)
	return found + groups.human_agents


func _init(groups: RLAddon.AgentGroups, node: Node) -> void:
	var scene: Node = node.get_tree().current_scene
	name = str(scene.get_path_to(node) if scene and scene.is_ancestor_of(node) else node.get_path())
	policy = str(node.get("policy_name")) if "policy_name" in node else NOTHING
	if "_rl_episode" in node:
		episode = "%d, tick %d" % [node._rl_episode.number + 1, node.n_steps]
	for player: RLAddon.InferenceAgent in groups.policies.players():
		if player.agent.node == node:
			_read_player(player, groups.policies.policy_of(player))
			return
	for agent: RLAddon.Agent in groups.registry.agents:
		if agent.node == node:
			_read_agent(agent)
			by = "a trainer"
			return
	by = "people"
	seen = node.get_obs()
	reward = node.get_reward()
	if node.has_method("get_action") and node.get_action():
		action = {"all": node.get_action()}


func _read_agent(agent: RLAddon.Agent) -> void:
	seen = agent.seen
	action = agent.action
	reward = agent.episode.reward + agent.node.reward if "reward" in agent.node else 0.0


func _read_player(player: RLAddon.InferenceAgent, by_policy: RLAddon.Policy) -> void:
	_read_agent(player.agent)
	by = by_policy.name.get_file()
	var told: String = RLAddon.ModelAbout.describe(player.model.metadata)
	about = told if told else NOTHING
	reward = player.reward
	returns = "%.3f" % player.earned
	if player.episodes:
		returns += ", last episode %.3f" % player.last_return
	var expected: float = player.model.value_in(player.said)
	value = NOTHING if is_nan(expected) else "%.3f" % expected
	thought = "%.2f ms" % (player.model.duration_usec / 1000.0)
	if by_policy.players.size() > 1:
		thought += " for %d agents" % by_policy.players.size()
