extends RefCounted
## What a model's file says about itself: the metadata that Estragon's exports write.
##
## Files of other exporters have none; they are checked by the numbers they take and give.


## In a few words: "ppo, 20000 steps, int8"; "" if it says nothing.
static func describe(metadata: Dictionary) -> String:
	var parts: PackedStringArray = []
	for key: String in ["algorithm", "role", "quantization"]:
		if metadata.get(key, ""):
			parts.append(metadata[key])
	if metadata.get("training_steps", ""):
		parts.append("%s steps" % metadata["training_steps"])
	if metadata.get("distilled_from", ""):
		parts.append("distilled")
	return ", ".join(parts)


## Why it cannot play an agent with these spaces, naming both; "" if it can, or does not say.
static func misfit(metadata: Dictionary, spaces: RLAddon.Spaces) -> String:
	var seen: Variant = _parsed(metadata.get("observation_space", ""))
	if seen is Dictionary and seen and not _sees_alike(seen, spaces.observation_space):
		return (
			"the model sees %s, the agent has %s"
			% [_describe_seen(seen), _describe_seen(spaces.observation_space)]
		)
	var done: Variant = _parsed(metadata.get("action_space", ""))
	if done is Array and done and not _does_alike(done, spaces.action_space):
		return (
			"the model does %s, the agent takes %s"
			% [_describe_done(done), RLAddon.GodotRLActions.describe(spaces.action_space)]
		)
	return ""


static func _parsed(text: String) -> Variant:
	var json: JSON = JSON.new()
	return json.data if json.parse(text) == OK else null


## One input takes all observations of an agent, one after another.
static func _sees_alike(model: Dictionary, agent: Dictionary) -> bool:
	if model.size() == 1 and (agent.size() != 1 or model.keys() == agent.keys()):
		var total: int = 0
		for key: Variant in agent:
			total += _count(agent[key])
		return _count(model.values()[0]) == total
	for key: Variant in agent:
		if not model.has(str(key)) or _count(model[str(key)]) != _count(agent[key]):
			return false
	return model.size() == agent.size()


## Trainers with one continuous action give all parts of mixed ones by it.
static func _does_alike(model: Array, agent: Dictionary) -> bool:
	var kinds: Array = agent.values().map(_kind)
	if model.map(_kind) == kinds:
		var keys: Array = agent.keys()
		for place: int in keys.size():
			if model[place].get("key", "") not in ["", str(keys[place])]:
				return false
		return true
	var total: int = 0
	var has_continuous: bool = false
	for kind: Array in kinds:
		total += kind[1]
		has_continuous = has_continuous or kind[0] == "continuous"
	return has_continuous and model.map(_kind) == [["continuous", total]]


static func _kind(action: Variant) -> Array:
	return [action.get("action_type"), int(action.get("size", 0))] if action is Dictionary else []


## How many numbers are sent for an observation.
static func _count(space: Variant) -> int:
	if not space is Dictionary or space.get("space") == "discrete":
		return 1
	var count: int = 1
	var sizes: Variant = space.get("size")
	for size: Variant in sizes if sizes is Array else [sizes]:
		count *= int(size)
	return count


static func _describe_seen(spaces: Dictionary) -> String:
	var parts: PackedStringArray = []
	for key: Variant in spaces:
		parts.append("%s: %d numbers" % [key, _count(spaces[key])])
	return ", ".join(parts)


static func _describe_done(actions: Array) -> String:
	var parts: PackedStringArray = []
	for action: Variant in actions:
		var key: String = action.get("key", "") if action is Dictionary else ""
		var kind: Array = _kind(action)
		parts.append(("%s: " % key if key else "") + "%s %s" % [kind[1], kind[0]] if kind else "?")
	return ", ".join(parts)
