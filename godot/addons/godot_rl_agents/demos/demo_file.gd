extends RefCounted
## A JSON file of demonstrations: the observations and actions of each episode.

var path: String

var _episodes: PackedStringArray = []


func _init(at: String) -> void:
	path = at


## Add an episode; it has one more observation than actions.
func add(seen: Array, done: Array) -> void:
	_episodes.append(JSON.stringify([seen, done], "", false))
	_write()


## The episodes, each as `[observations, actions]`.
func episodes() -> Array:
	return Array(_episodes).map(JSON.parse_string)


func remove_last() -> void:
	if _episodes:
		_episodes.remove_at(_episodes.size() - 1)
		_write()


## Write a temporary file, then rename it, so that the file is always complete.
func _write() -> void:
	var unfinished: String = path + ".unfinished"
	var file: FileAccess = FileAccess.open(unfinished, FileAccess.WRITE)
	if not file:
		var reason: String = error_string(FileAccess.get_open_error())
		push_error("Godot RL Agents: cannot write %s: %s" % [unfinished, reason])
		return
	file.store_string("[" + ",".join(_episodes) + "]")
	file.close()
	var renamed: int = DirAccess.rename_absolute(
		ProjectSettings.globalize_path(unfinished), ProjectSettings.globalize_path(path)
	)
	if renamed != OK:
		push_error("Godot RL Agents: cannot write %s: %s" % [path, error_string(renamed)])
		return
	print("Godot RL Agents: %d demonstrations in %s" % [_episodes.size(), path])
