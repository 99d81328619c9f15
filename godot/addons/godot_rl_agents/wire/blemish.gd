extends RefCounted
## Tells people of numbers that are no numbers: once for every agent and key.

var _told: Dictionary[String, bool] = {}


## Say what is wrong in what an agent sees.
func find(agent: RLAddon.Agent, seen: Dictionary) -> void:
	for key: Variant in agent.spaces.number_keys:
		var numbers: PackedFloat32Array = RLAddon.Spaces.numbers_of(seen[key])
		for i: int in numbers.size():
			if not is_finite(numbers[i]):
				tell(agent, "number %d of its observation '%s'" % [i, key], numbers[i], str(key))
				break


func tell(agent: RLAddon.Agent, what: String, value: float, topic: String = "") -> void:
	var where: String = "%d %s" % [agent.id, topic if topic else what]
	if where not in _told:
		_told[where] = true
		push_error(
			"Godot RL Agents: agent %s: %s is %s; 0 is sent instead" % [agent.name, what, value]
		)
