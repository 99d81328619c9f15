extends RefCounted
## What an actor of either kind does.
##
##   sees      {key: [number | "count" | "number" | "seed"]}
##   actions   its action space
##   masks     by action, one list of choices after the other
##   lifetime  ticks after which its episode is over; `asks`: it is reset in the next tick;
##             `is_late`: it says so when it is asked for its reward
##   set       {property of the controller: value}

var _actor: Node
var _says: Dictionary
var _count: int = 0
var _acts: int = 0


func _init(actor: Node, says: Dictionary) -> void:
	_actor = actor
	_says = says
	for key: String in says.get("set", {}):
		actor.set(key, says["set"][key])


func tick() -> void:
	if _actor.needs_reset:
		_restart()
		return
	_count += 1
	if not _says.get("is_late"):
		_end()


func reward() -> float:
	if _says.get("is_late"):
		_end()
	return _count


func see() -> Dictionary:
	var seen: Dictionary = {}
	for key: String in _says["sees"]:
		seen[key] = _says["sees"][key].map(_look)
		if _says.get("shrinks_at") == _actor.get_parent().tick:
			seen[key].pop_back()
	return seen


func mask() -> Dictionary:
	var masks: Dictionary = {}
	for key: String in _says.get("masks", {}):
		masks[key] = _says["masks"][key][_acts % _says["masks"][key].size()]
	return masks


func act(action: Dictionary) -> void:
	_acts += 1
	_actor.get_parent().note(_says["name"], _count, action)


func _end() -> void:
	if _count == int(_says.get("lifetime", 0)):
		_actor.done = true
		if _says.get("asks"):
			_actor.needs_reset = true
		else:
			_restart()


func _look(at: Variant) -> float:
	match at:
		"count":
			return _count
		"number":
			return _says["number"]
		"seed":
			return _actor.episode_seed % 1000
		"nan":
			return NAN
	return at


func _restart() -> void:
	_count = 0
	_actor.reset()
