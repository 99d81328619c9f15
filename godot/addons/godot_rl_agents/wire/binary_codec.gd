extends RefCounted
## What is said in the encoding `binary1`: packed numbers, one buffer a message.

const NAME: String = "binary1"
## Room for the length, then kind, flags, zeros and the number of rows.
const HEAD: PackedByteArray = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
const KIND_AT: int = 4
const FLAGS_AT: int = 5
const ROWS_AT: int = 8
const ACTIONS: int = 0x41
const RESET: int = 0x52
const STEP: int = 0x53
const JOINED: int = 1
const INFOS: int = 2
const MASKS: int = 4
const HAS_LAST: int = 4
const HAS_LEFT: int = 8

## What is wrong, or "".
var problem: String = ""

var _registry: RLAddon.AgentRegistry
var _finite: RLAddon.Finite = RLAddon.Finite.new()
## The infos that were told last, and how they are written.
var _told: Array = []
var _told_text: String = ""


func _init(registry: RLAddon.AgentRegistry) -> void:
	_registry = registry


## What `env_info` says beyond version 0.7.
func env_info() -> Dictionary:
	var ids: Array = []
	var masks: Array = []
	for agent: RLAddon.Agent in _registry.agents:
		ids.append(agent.id)
		masks.append(agent.spaces.mask_sizes)
	return {"encoding": NAME, "agent_ids": ids, "action_mask": masks}


## Give everyone their action; false if the frame makes no sense.
func act(frame: PackedByteArray) -> bool:
	problem = ""
	var size: int = 8 + 4 * _registry.action_width
	if frame[0] != ACTIONS:
		problem = "unknown message kind %d" % frame[0]
	elif frame.size() != size:
		problem = "invalid actions: got %d bytes, expected %d" % [frame.size(), size]
	elif frame.decode_u32(4) != _registry.agents.size():
		problem = (
			"invalid actions: got %d agents, expected %d"
			% [frame.decode_u32(4), _registry.agents.size()]
		)
	if problem:
		return false
	var numbers: PackedFloat32Array = frame.slice(8).to_float32_array()
	if not RLAddon.Finite.are_all(numbers):
		problem = "invalid actions: NaN or infinite"
		return false
	return _hand_out(numbers)


## What came of the order.
func outcome(is_reset: bool) -> PackedByteArray:
	problem = ""
	var rows: Array[RLAddon.Agent] = _registry.agents
	var frame: PackedByteArray = HEAD.duplicate()
	frame[KIND_AT] = RESET if is_reset else STEP
	if _registry.joined:
		rows = rows + _registry.joined
		frame[FLAGS_AT] |= JOINED
		_append_text(frame, RLAddon.JsonCodec.text_of(_registry.joined.map(_describe)))
	frame.encode_u32(ROWS_AT, rows.size())
	_append_earnings(frame, rows)
	_append_seen(frame, rows)
	_append_masks(frame, rows)
	_append_infos(frame, rows, is_reset)
	return frame


func _hand_out(numbers: PackedFloat32Array) -> bool:
	var at: int = 0
	var actions: Array = []
	for agent: RLAddon.Agent in _registry.agents:
		var action: Variant = agent.spaces.unpack_action(numbers, at)
		if action == null:
			problem = "invalid actions: a choice of agent %s is out of range" % agent.name
			return false
		actions.append(action)
		at += agent.spaces.action_width
	for i: int in actions.size():
		_registry.agents[i].act(actions[i])
	return true


func _describe(agent: RLAddon.Agent) -> Dictionary:
	return {
		"id": agent.id,
		"policy": agent.policy,
		"observation_space": agent.spaces.observation_space,
		"action_space": agent.spaces.action_space,
		"action_mask": agent.spaces.mask_sizes,
	}


## Rewards, and how episodes ended.
func _append_earnings(frame: PackedByteArray, rows: Array[RLAddon.Agent]) -> void:
	var rewards: PackedFloat32Array = []
	var states: PackedByteArray = []
	rewards.resize(rows.size())
	states.resize(rows.size())
	for i: int in rows.size():
		var episode: RLAddon.Episode = rows[i].episode
		rewards[i] = episode.reward
		if episode.state != RLAddon.Episode.GOING:
			states[i] = episode.state | HAS_LAST if episode.last else episode.state
		if rows[i].is_gone:
			states[i] |= HAS_LEFT
	if not RLAddon.Finite.are_all(rewards):
		for i: int in rows.size():
			if not is_finite(rewards[i]):
				_finite.report(rows[i], "its reward", rewards[i])
				rewards[i] = 0.0
	frame.append_array(rewards.to_byte_array())
	_append_padded(frame, states)


func _append_seen(frame: PackedByteArray, rows: Array[RLAddon.Agent]) -> void:
	var numbers: PackedFloat32Array = []
	var last_numbers: PackedFloat32Array = []
	var images: PackedByteArray = []
	var last_images: PackedByteArray = []
	for agent: RLAddon.Agent in rows:
		var seen: Dictionary = agent.see()
		var spaces: RLAddon.Spaces = agent.spaces
		var list: Variant = seen.get(spaces.lone_key) if spaces.lone_size else null
		if list is Array and list.size() == spaces.lone_size and not list[0] is Array:
			numbers.append_array(PackedFloat32Array(list))
		else:
			_pack(agent, seen, numbers, images)
		var episode: RLAddon.Episode = agent.episode
		if episode.state != RLAddon.Episode.GOING and episode.last:
			_pack(agent, episode.last, last_numbers, last_images)
	if not (RLAddon.Finite.are_all(numbers) and RLAddon.Finite.are_all(last_numbers)):
		_report_non_finite(rows)
		numbers = RLAddon.Finite.cleaned(numbers)
		last_numbers = RLAddon.Finite.cleaned(last_numbers)
	frame.append_array(numbers.to_byte_array())
	if last_numbers:
		frame.append_array(last_numbers.to_byte_array())
	if images:
		_append_padded(frame, images)
		_append_padded(frame, last_images)


func _pack(
	agent: RLAddon.Agent, seen: Dictionary, numbers: PackedFloat32Array, images: PackedByteArray
) -> void:
	var complaint: String = agent.spaces.pack_numbers(seen, numbers)
	if not complaint and agent.spaces.image_keys:
		complaint = agent.spaces.pack_images(seen, images)
	if complaint:
		problem = "%s: %s" % [agent.name, complaint]


func _report_non_finite(rows: Array[RLAddon.Agent]) -> void:
	for agent: RLAddon.Agent in rows:
		_finite.report_observation(agent, agent.seen)
		if agent.episode.last:
			_finite.report_observation(agent, agent.episode.last)


func _append_masks(frame: PackedByteArray, rows: Array[RLAddon.Agent]) -> void:
	if not _registry.has_masks and not _registry.joined:
		return
	var masks: PackedByteArray = []
	for agent: RLAddon.Agent in rows:
		if agent.spaces.mask_sizes:
			var complaint: String = agent.spaces.pack_mask(agent.mask(), masks)
			if complaint:
				problem = "%s: %s" % [agent.name, complaint]
	if masks:
		frame[FLAGS_AT] |= MASKS
		_append_padded(frame, masks)


func _append_infos(frame: PackedByteArray, rows: Array[RLAddon.Agent], is_reset: bool) -> void:
	var infos: Array = []
	var is_said: bool = false
	for agent: RLAddon.Agent in rows:
		var info: Dictionary = agent.info()
		if is_reset or agent.episode.state != RLAddon.Episode.GOING:
			info = info.merged({"seed": agent.episode.episode_seed}, true)
			info.merge(agent.parameters(), true)
		elif infos.size() >= _registry.agents.size():
			info = info.merged(agent.parameters(), true)
		if info:
			is_said = true
		infos.append(info)
	if not is_said:
		return
	# Most agents tell the same as the last time; that need not be written again.
	if infos != _told:
		_told = infos.duplicate(true)
		_told_text = RLAddon.JsonCodec.text_of(infos)
	frame[FLAGS_AT] |= INFOS
	_append_text(frame, _told_text)


func _append_text(frame: PackedByteArray, text: String) -> void:
	var bytes: PackedByteArray = text.to_utf8_buffer()
	frame.append_array(PackedInt32Array([bytes.size()]).to_byte_array())
	_append_padded(frame, bytes)


func _append_padded(frame: PackedByteArray, section: PackedByteArray) -> void:
	frame.append_array(section)
	while frame.size() % 4:
		frame.append(0)
