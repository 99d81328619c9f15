extends RefCounted
## What is said in JSON: version 0.7 of the protocol, for every trainer that speaks it.

const NUMERIC: Array[int] = [TYPE_INT, TYPE_FLOAT]
## How Godot writes infinity.
const INFINITE: String = "1e99999"

## What is wrong, or "".
var problem: String = ""

var _sync: Sync
var _registry: RLAddon.AgentRegistry
var _finite: RLAddon.Finite = RLAddon.Finite.new()


func _init(sync: Sync, registry: RLAddon.AgentRegistry) -> void:
	_sync = sync
	_registry = registry


## A message as a frame, with room for its length. The keys stay in their order.
static func frame_of(message: Dictionary) -> PackedByteArray:
	var frame: PackedByteArray = [0, 0, 0, 0]
	frame.append_array(text_of(message).to_utf8_buffer())
	return frame


## JSON that every reader takes: what is no number in it is 0, and there are no control characters,
## which Godot leaves as they are.
static func text_of(value: Variant) -> String:
	var text: String = JSON.stringify(value, "", false)
	if text.contains(INFINITE):
		text = JSON.stringify(RLAddon.Finite.cleaned(value), "", false)
	return text.strip_escapes()


## Who plays, and what they see and do.
func env_info() -> Dictionary:
	var observation_spaces: Array = []
	var action_spaces: Array = []
	var policies: Array = []
	for agent: RLAddon.Agent in _registry.agents:
		observation_spaces.append(agent.spaces.observation_space)
		action_spaces.append(agent.spaces.action_space)
		policies.append(agent.policy)
	return {
		"type": "env_info",
		"observation_space": observation_spaces,
		"action_space": action_spaces,
		"n_agents": _registry.agents.size(),
		"agent_policy_names": policies,
	}


## Give everyone their action; false if the message makes no sense.
func act(actions: Variant) -> bool:
	problem = ""
	if not actions is Array or actions.size() != _registry.agents.size():
		problem = "invalid actions: expected a list for %d agents" % _registry.agents.size()
		return false
	var understood: Array[Dictionary] = []
	for i: int in actions.size():
		understood.append(_understand(_registry.agents[i], actions[i]))
	if problem:
		return false
	var nodes: Array[Node] = []
	var actions_here: Array[Dictionary] = []
	for i: int in understood.size():
		if _registry.agents[i].note_action(understood[i]):
			nodes.append(_registry.agents[i].node)
			actions_here.append(understood[i])
	_sync._set_agent_actions(actions_here, nodes)
	return true


## What came of the order, as the game says it.
func outcome(is_reset: bool) -> Dictionary:
	problem = ""
	var seen: Array = _all_seen()
	var nodes: Array[Node] = _registry.nodes()
	var infos: Array = _in_all_rows(_sync._get_info_from_agents(nodes), {})
	if is_reset:
		for i: int in infos.size():
			_tell_parameters(infos, i)
		return {"type": "reset", "obs": seen, "info": infos}
	var rewards: Array = _in_all_rows(_sync._get_reward_from_agents(nodes), 0.0)
	var dones: Array = _in_all_rows(_sync._get_done_from_agents(nodes), false)
	for i: int in rewards.size():
		if not is_finite(rewards[i]):
			_finite.report(_registry.agents[i], "its reward", rewards[i])
			rewards[i] = 0.0
		dones[i] = _registry.agents[i].settle_done() or dones[i]
		if dones[i]:
			_tell_parameters(infos, i)
	return {"type": "step", "obs": seen, "reward": rewards, "done": dones, "info": infos}


## What the agents that are here have, in the order of the wire; `other` for those that are gone.
func _in_all_rows(values: Array, other: Variant) -> Array:
	if values.size() == _registry.agents.size():
		return values
	var rows: Array = []
	var next: int = 0
	for agent: RLAddon.Agent in _registry.agents:
		rows.append(other if agent.is_gone else values[next])
		next += 0 if agent.is_gone else 1
	return rows


func _tell_parameters(infos: Array, i: int) -> void:
	var told: Dictionary = _registry.agents[i].parameters()
	if told and infos[i] is Dictionary:
		infos[i] = infos[i].merged(told, true)


func _understand(agent: RLAddon.Agent, said: Variant) -> Dictionary:
	var action: Dictionary = {}
	var spaces: RefCounted = agent.spaces
	for i: int in spaces.action_keys.size():
		var key: Variant = spaces.action_keys[i]
		var value: Variant = said.get(key) if said is Dictionary else null
		if spaces.action_choices[i]:
			if typeof(value) not in NUMERIC or value < 0 or value >= spaces.action_choices[i]:
				_complain(agent, key, "a choice below %d" % spaces.action_choices[i], value)
				break
			action[key] = int(value)
		else:
			value = [value] if typeof(value) in NUMERIC else value
			if not _are_numbers(value, spaces.action_widths[i]):
				_complain(agent, key, "%d numbers" % spaces.action_widths[i], value)
				break
			action[key] = value
	return action


func _are_numbers(value: Variant, count: int) -> bool:
	if not value is Array or value.size() != count:
		return false
	return value.all(func(x: Variant) -> bool: return typeof(x) in NUMERIC and is_finite(x))


func _complain(agent: RLAddon.Agent, key: Variant, expected: String, value: Variant) -> void:
	var text: String = JSON.stringify(value).left(80)
	problem = "action '%s' of agent %s: expected %s, got %s" % [key, agent.name, expected, text]


## What everyone sees, with pictures in hex and 0 for what is no number.
func _all_seen() -> Array:
	var numbers: PackedFloat32Array = []
	var seen: Array = []
	RLAddon.Agent.observe(_registry.agents, _sync)
	for agent: RLAddon.Agent in _registry.agents:
		seen.append(agent.seen)
		var complaint: String = agent.spaces.pack_numbers(agent.seen, numbers)
		if complaint:
			problem = "%s: %s" % [agent.name, complaint]
		if agent.spaces.image_keys:
			seen[-1] = _with_hex(agent.seen, agent.spaces.image_keys)
	if not RLAddon.Finite.are_all(numbers):
		for i: int in seen.size():
			_finite.report_observation(_registry.agents[i], seen[i])
			seen[i] = RLAddon.Finite.cleaned(seen[i])
	return seen


func _with_hex(seen: Dictionary, image_keys: Array) -> Dictionary:
	var sendable: Dictionary = seen.duplicate()
	for key: Variant in image_keys:
		if sendable.get(key) is PackedByteArray:
			sendable[key] = sendable[key].hex_encode()
	return sendable
