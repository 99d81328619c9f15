extends RefCounted
## Records the observations and actions of one agent's expert.

var node: Node
var file: RLAddon.DemoFile

var _episode: RLAddon.Episode
var _seen: Array = []
var _done: Array = []
var _ticks_left: int = 0
var _has_awaited: bool = false
## Whether `set_action` has a default argument, which makes it apply the expert's action.
var _asks_expert: bool = false


func _init(of: Node, into: RLAddon.DemoFile) -> void:
	node = of
	file = into
	_episode = node._rl_episode
	_episode.keeps_ends = true
	for method: Dictionary in node.get_method_list():
		if method["name"] == "set_action" and method["default_args"]:
			_asks_expert = true


## A tick begins.
func tick() -> void:
	if _episode.state != RLAddon.Episode.GOING or node.get_done():
		_finish()
	if node.needs_reset and not _has_awaited:
		_has_awaited = true
		return
	_has_awaited = node.needs_reset
	_ticks_left -= 1
	if _ticks_left <= 0:
		_ticks_left = node.action_repeat
		_look()


## The episode so far, as `[observations, actions]`.
func current() -> Array:
	return [_seen, _done]


func is_remove_key(event: InputEvent) -> bool:
	var key: InputEvent = node.remove_last_episode_key
	return key != null and event.is_pressed() and not event.is_echo() and event.is_match(key)


func _look() -> void:
	_seen.append(_sight(node.get_obs()))
	if _asks_expert:
		node.set_action()
	var action: Array = node.get_action()
	if action.is_empty():
		push_error("Godot RL Agents: get_action() of %s returned an empty array" % node.get_path())
	_done.append(action.duplicate())
	_episode.play()


func _finish() -> void:
	if _done:
		_seen.append(_sight(_episode.last if _episode.last else node.get_obs()))
		file.add(_seen, _done)
	_seen = []
	_done = []
	_ticks_left = 0
	_episode.clear()
	_episode.forget_end()
	node.zero_reward()


## An observation as stored; a single key "obs" is stored as its list.
func _sight(seen: Dictionary) -> Variant:
	var kept: Dictionary = {}
	for key: Variant in seen:
		var value: Variant = seen[key]
		kept[key] = (
			value.hex_encode() if value is PackedByteArray else RLAddon.Finite.cleaned(value)
		)
	return kept["obs"] if kept.keys() == ["obs"] else kept
