extends RefCounted
## The command line's `--key=value`, before and after a `--`.


## All of them, by key.
static func read() -> Dictionary[String, String]:
	var found: Dictionary[String, String] = {}
	for word: String in OS.get_cmdline_args() + OS.get_cmdline_user_args():
		if word.begins_with("--") and "=" in word:
			found[word.get_slice("=", 0).trim_prefix("--")] = word.substr(word.find("=") + 1)
	return found


## A path relative to the folder the game was started from; Godot has changed to the project's.
static func path(typed: String) -> String:
	var there: String = OS.get_environment("PWD").path_join(typed)
	var is_there: bool = typed.is_relative_path() and FileAccess.file_exists(there)
	return there if is_there else typed
