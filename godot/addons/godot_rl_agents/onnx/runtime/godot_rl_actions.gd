class_name GodotRLActions
extends RefCounted
## A policy's numbers as actions: logits of discrete actions, means of continuous ones, in the order
## of the action space's keys. RLlib's policies put the logarithms of the spreads after the means.

var error: String = ""

var _space: Dictionary
var _has_spreads: bool = false


## Args: the space as `get_action_space` has it, and how many numbers the policy gives.
func _init(action_space: Dictionary, numbers: int) -> void:
	_space = action_space
	var means: int = 0
	var total: int = 0
	for key: String in action_space:
		var part: Dictionary = action_space[key]
		total += int(part["size"])
		means += int(part["size"]) if part["action_type"] == "continuous" else 0
	_has_spreads = means > 0 and numbers == total + means
	if numbers != total and not _has_spreads:
		error = "the model gives %d numbers, the action space needs %d" % [numbers, total]


## The actions by key; drawn where there is a generator, else the most likely.
func decode(numbers: PackedFloat32Array, random: RandomNumberGenerator = null) -> Dictionary:
	var actions: Dictionary = {}
	var at: int = 0
	for key: String in _space:
		var size: int = _space[key]["size"]
		var part: PackedFloat32Array = numbers.slice(at, at + size)
		at += size
		if _space[key]["action_type"] == "continuous":
			if _has_spreads:
				_spread(part, numbers.slice(at, at + size), random)
				at += size
			for index: int in size:
				part[index] = clampf(part[index], -1.0, 1.0)
			actions[key] = Array(part)
		else:
			actions[key] = _drawn(part, random) if random else _largest(part)
	return actions


func _spread(
	means: PackedFloat32Array, log_spreads: PackedFloat32Array, random: RandomNumberGenerator
) -> void:
	for index: int in means.size() if random else 0:
		means[index] += random.randfn() * exp(log_spreads[index])


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
