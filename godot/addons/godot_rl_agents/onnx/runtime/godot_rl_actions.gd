extends RefCounted
## A policy's numbers as actions: logits of discrete actions, means of continuous ones, in the order
## of the action space's keys. RLlib's policies put the logarithms of the spreads after the means.

## Far below what any policy says.
const LEAST: float = -1e30

var error: String = ""
## How many numbers the policy gives.
var numbers: int = 0
## Whether the logarithms of the spreads come after the means of continuous actions.
var has_spreads: bool = false

var _space: Dictionary


## Args: the space as `get_action_space` has it, and how many numbers the policy gives.
func _init(action_space: Dictionary, given: int) -> void:
	_space = action_space
	numbers = given
	var means: int = 0
	var total: int = 0
	for key: Variant in action_space:
		var part: Dictionary = action_space[key]
		total += int(part["size"])
		means += int(part["size"]) if part["action_type"] == "continuous" else 0
	has_spreads = means > 0 and numbers == total + means
	if numbers != total and not has_spreads:
		error = "the model gives %d numbers, the action space needs %d" % [numbers, total]
		error += " (%s)" % describe(action_space)
		if means:
			error += ", or %d with spreads" % (total + means)


## An action space in words: "move: 2 continuous, kick: 3 discrete".
static func describe(action_space: Dictionary) -> String:
	var parts: PackedStringArray = []
	for key: Variant in action_space:
		parts.append(
			"%s: %d %s" % [key, action_space[key]["size"], action_space[key]["action_type"]]
		)
	return ", ".join(parts)


## The actions by key; drawn where there is a generator, else the most likely. A mask says for
## every choice of a discrete action whether it is allowed; one that allows nothing does not count.
func decode(
	said: PackedFloat32Array, random: RandomNumberGenerator = null, mask: Dictionary = {}
) -> Dictionary:
	var actions: Dictionary = {}
	var at: int = 0
	for key: Variant in _space:
		var size: int = _space[key]["size"]
		var part: PackedFloat32Array = said.slice(at, at + size)
		at += size
		if _space[key]["action_type"] == "continuous":
			if has_spreads:
				_spread(part, said.slice(at, at + size), random)
				at += size
			for index: int in size:
				part[index] = 0.0 if is_nan(part[index]) else clampf(part[index], -1.0, 1.0)
			actions[key] = Array(part)
			continue
		_forbid(part, mask.get(key))
		actions[key] = _drawn(part, random) if random else _largest(part)
	return actions


func _spread(
	means: PackedFloat32Array, log_spreads: PackedFloat32Array, random: RandomNumberGenerator
) -> void:
	for index: int in means.size() if random else 0:
		means[index] += random.randfn() * exp(log_spreads[index])


## Choices that are not allowed are never taken; where a number is none, only if nothing else is.
func _forbid(logits: PackedFloat32Array, allowed: Variant) -> void:
	var mask: Array = Array(allowed) if allowed != null else []
	var has_mask: bool = mask.size() == logits.size() and mask.any(_is_true)
	for index: int in logits.size():
		if has_mask and not mask[index]:
			logits[index] = -INF
		else:
			logits[index] = LEAST if is_nan(logits[index]) else clampf(logits[index], LEAST, -LEAST)


static func _is_true(choice: Variant) -> bool:
	return bool(choice)


func _largest(logits: PackedFloat32Array) -> int:
	var best: int = 0
	for index: int in logits.size():
		if logits[index] > logits[best]:
			best = index
	return best


func _drawn(logits: PackedFloat32Array, random: RandomNumberGenerator) -> int:
	var largest: float = logits[_largest(logits)]
	var sum: float = 0.0
	for logit: float in logits:
		sum += exp(logit - largest)
	var rest: float = random.randf() * sum
	for index: int in logits.size():
		rest -= exp(logits[index] - largest)
		if rest < 0.0:
			return index
	return _largest(logits)
