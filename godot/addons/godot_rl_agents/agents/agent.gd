extends RefCounted
## An agent controlled by a trainer: its node, spaces and episode.

## Valid unless `is_gone`.
var node: Node
## Unique within this run.
var id: int
## The name of its policy.
var policy: String
## Its name in messages.
var name: String
var spaces: RLAddon.Spaces
var episode: RLAddon.Episode
## Its last observation.
var seen: Dictionary = {}
## Its last action.
var action: Dictionary = {}
## Whether it has left the game.
var is_gone: bool = false
## An error, or "".
var problem: String = ""

## Whether an older trainer must still be sent `done` for the agent that left.
var _owes_done: bool = false
var _has_awaited: bool = false
var _earned_at_exit: float = 0.0
var _has_mask: bool
var _has_info: bool


func _init(of: Node, number: int, game_seed: int) -> void:
	id = number
	_take(of)
	seen = node.get_obs()
	var mask: Dictionary = node.get_action_mask() if _has_mask else {}
	spaces = RLAddon.Spaces.new(node.get_obs_space(), node.get_action_space(), mask)
	_has_mask = not spaces.mask_sizes.is_empty()
	problem = spaces.problem if spaces.problem else spaces.check(seen)
	episode.id = id
	episode.restart(game_seed)


## The policy name of a node.
static func policy_of(of: Node) -> String:
	return str(of.get("policy_name")) if "policy_name" in of else "shared_policy"


## Observe through Sync, whose `_get_obs_from_agents` a game may override.
static func observe(agents: Array, sync: Sync) -> void:
	var here: Array = agents.filter(_is_here)
	var observations: Array = sync._get_obs_from_agents(here.map(_node_of))
	for i: int in here.size():
		here[i].seen = observations[i]


## Whether the game ended this node's episode since the last call.
static func take_done(of: Node) -> bool:
	if not (of.get_done() or of.get("truncated") == true):
		return false
	of.set_done_false()
	if "truncated" in of:
		of.truncated = false
	return true


## Continue with another node.
func replace(by: Node) -> void:
	var before: RLAddon.Episode = episode
	_take(by)
	_has_mask = not spaces.mask_sizes.is_empty()
	episode.follow(before)


## The node left the game.
func part() -> void:
	is_gone = true
	_owes_done = true
	episode.leave(seen, _earned_at_exit)
	if is_instance_valid(node):
		node.tree_exiting.disconnect(_on_exit)


## Something else controls it from now on.
func release() -> void:
	is_gone = true
	if is_instance_valid(node):
		node.tree_exiting.disconnect(_on_exit)


## Update and return its observation.
func see() -> Dictionary:
	if not is_gone:
		seen = node.get_obs()
	return seen


## Its action mask.
func mask() -> Dictionary:
	return node.get_action_mask() if _has_mask and not is_gone else {}


## Its extra data.
func info() -> Dictionary:
	return node.get_info() if _has_info and not is_gone else {}


## The parameters of its episode, as the trainer is told of them.
func parameters() -> Dictionary:
	var values: Dictionary = {} if is_gone else RLAddon.ParameterStore.values_of(node)
	return {"parameters": values} if values else {}


## For an older trainer: whether `done` must be sent for the agent that left.
func settle_done() -> bool:
	var owes_done: bool = _owes_done
	_owes_done = false
	return owes_done


func act(by: Dictionary) -> void:
	if note_action(by):
		node.set_action(by)


## Note its next action; false if it has left.
func note_action(by: Dictionary) -> bool:
	if is_gone:
		return false
	episode.play()
	action = by
	return true


## A reset by the trainer is done: discard rewards and ends.
func start_over() -> void:
	episode.clear()
	_owes_done = false
	if not is_gone:
		episode.forget_end()
		node.zero_reward()


## Whether the game needs a tick to carry out a reset; true once per reset.
func awaits_reset() -> bool:
	if is_gone or not node.needs_reset:
		_has_awaited = false
		return false
	var is_new: bool = not _has_awaited
	_has_awaited = true
	return is_new


func _take(other: Node) -> void:
	node = other
	name = str(node.get_path())
	policy = policy_of(node)
	episode = node._rl_episode if "_rl_episode" in node else RLAddon.Episode.new(node)
	is_gone = false
	_has_mask = node.has_method("get_action_mask")
	_has_info = node.has_method("get_info")
	node.tree_exiting.connect(_on_exit)


func _on_exit() -> void:
	_earned_at_exit = node.reward if "reward" in node else 0.0


static func _is_here(agent: RLAddon.Agent) -> bool:
	return not agent.is_gone


static func _node_of(agent: RLAddon.Agent) -> Node:
	return agent.node
