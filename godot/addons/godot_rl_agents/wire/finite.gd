extends RefCounted
## Detects NaN and infinity without a loop over the values, and reports each case once.

## The header with which bytes_to_var recognises a PackedVector2Array.
const VECTORS: int = TYPE_PACKED_VECTOR2_ARRAY

var _reported: Dictionary[String, bool] = {}


## Whether every value is finite.
static func are_all(numbers: PackedFloat32Array) -> bool:
	if numbers.is_empty():
		return true
	return not (numbers.has(INF) or numbers.has(-INF) or _has_nan(numbers))


## A copy with NaN and infinity replaced by 0 at any depth.
static func cleaned(value: Variant) -> Variant:
	if typeof(value) == TYPE_FLOAT:
		return value if is_finite(value) else 0.0
	if value is Array:
		return value.map(cleaned)
	if value is Dictionary:
		var copy: Dictionary = {}
		for key: Variant in value:
			copy[key] = cleaned(value[key])
		return copy
	if value is PackedFloat32Array or value is PackedFloat64Array:
		return Array(value).map(cleaned)
	return value


## Report the first value of each key of an observation that is not finite.
func report_observation(agent: RLAddon.Agent, obs: Dictionary) -> void:
	for key: Variant in agent.spaces.number_keys:
		var numbers: PackedFloat32Array = RLAddon.Spaces.numbers_of(obs[key])
		for i: int in numbers.size():
			if not is_finite(numbers[i]):
				report(agent, "observation '%s', index %d" % [key, i], numbers[i], str(key))
				break


## Report a value once per agent and topic.
func report(agent: RLAddon.Agent, what: String, value: float, topic: String = "") -> void:
	var where: String = "%d %s" % [agent.id, topic if topic else what]
	if where not in _reported:
		_reported[where] = true
		push_error("Godot RL Agents: agent %s: %s is %s; sending 0" % [agent.name, what, value])


## NaN does not equal itself; packed vectors are compared by value, packed floats are not.
static func _has_nan(numbers: PackedFloat32Array) -> bool:
	var head: PackedInt32Array = [VECTORS, ceili(numbers.size() / 2.0)]
	var bytes: PackedByteArray = head.to_byte_array()
	bytes.append_array(numbers.to_byte_array())
	if numbers.size() % 2:
		bytes.append_array([0, 0, 0, 0])
	var vectors: PackedVector2Array = bytes_to_var(bytes)
	var again: PackedVector2Array = bytes_to_var(bytes)
	return vectors != again
