class_name TagLevels
extends RefCounted
## The trained policies that come with the game, from the weakest to the strongest.

const FOLDER: String = "res://tag/policies"
const LIST: String = FOLDER + "/levels.json"

## What is wrong with them, or "".
var error: String = ""
var names: PackedStringArray = []

## Entries of the list by level.
var _entries: Dictionary[String, Dictionary] = {}


static func read() -> TagLevels:
	var levels: TagLevels = TagLevels.new()
	var parsed: Variant = JSON.parse_string(FileAccess.get_file_as_string(LIST))
	var listed: Variant = parsed.get("levels") if parsed is Dictionary else null
	if not listed is Array or (listed as Array).is_empty():
		levels.error = "%s is missing or damaged: estragon export tag --levels makes it" % LIST
		return levels
	for entry: Dictionary in listed:
		levels.names.append(entry["name"])
		levels._entries[entry["name"]] = entry
	return levels


## The file of the policy that plays a role.
func path_of(level: String, role: String) -> String:
	return FOLDER.path_join(_entries[level][role])


## How long a level was trained, in words.
func training_of(level: String) -> String:
	var steps: float = _entries[level]["agent_steps"]
	return "%.1f million steps of training" % (steps / 1e6) if steps else "no training at all"
