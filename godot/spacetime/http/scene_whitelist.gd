class_name SceneWhitelist
extends RefCounted
## Which scenes the HTTP API may load: `res://config/scene_whitelist.json`.
##
## A scene is allowed if the section of the environment names it, its directory, or a wildcard that
## matches, and the blacklist does not. Without a readable file nothing is allowed.

const FILE: String = "res://config/scene_whitelist.json"
const ENVIRONMENTS: Array[String] = ["production", "development", "test"]
const MOST_PATH: int = 256

## Folders with or without a file; no name is empty or begins or ends with a dot.
static var _path_form: RegEx = RegEx.create_from_string(
	"^res://([A-Za-z0-9_ -]+(\\.[A-Za-z0-9_ -]+)*(/|\\z))*\\z"
)

## "production", "development" or "test".
var environment: String = "production"

var _scenes: Array = []
var _directories: Array = []
var _wildcards: Array = []
var _blacklist_patterns: Array = []
var _blacklist_exact: Array = []


func _init(chosen: String, file: String = FILE) -> void:
	environment = chosen
	var json: JSON = JSON.new()
	if json.parse(FileAccess.get_file_as_string(file)) != OK or not json.data is Dictionary:
		push_error("SpaceTime: %s cannot be read; no scene can be loaded over HTTP" % file)
		return
	var section: Dictionary = _object(_object(json.data, "environments"), environment)
	var blacklist: Dictionary = _object(json.data, "blacklist")
	_scenes = _list(section, "scenes")
	_directories = _list(section, "directories")
	_wildcards = _list(section, "wildcards")
	_blacklist_patterns = _list(blacklist, "patterns")
	_blacklist_exact = _list(blacklist, "exact")


## What is wrong with a path as text, or "".
static func problem_of(path: Variant, suffix: String = ".tscn") -> String:
	if not path is String or not path:
		return "expected a path such as res://scenes/features/vr_locomotion_test.tscn"
	if not path.begins_with("res://") or path.length() > MOST_PATH or not path.ends_with(suffix):
		return "expected a path that starts with res:// and ends with %s" % suffix
	return "" if _path_form.search(path) else "a path has letters, digits, _, -, spaces and dots"


func allows(path: String) -> bool:
	if problem_of(path) or path in _blacklist_exact or _matches(path, _blacklist_patterns):
		return false
	if path in _scenes or _matches(path, _wildcards):
		return true
	return _directories.any(func(folder: String) -> bool: return _is_in(path, folder))


## The allowed scenes of a directory and those below it.
func scenes_in(directory: String) -> Array[String]:
	var found: Array[String] = []
	for file: String in ResourceLoader.list_directory(directory):
		var path: String = directory.path_join(file)
		if file.ends_with("/"):
			found.append_array(scenes_in(path))
		elif allows(path):
			found.append(path)
	return found


static func _is_in(path: String, folder: String) -> bool:
	return path.begins_with(folder if folder.ends_with("/") else folder + "/")


static func _matches(path: String, patterns: Array) -> bool:
	return patterns.any(func(pattern: String) -> bool: return path.match(pattern))


static func _object(of: Dictionary, key: String) -> Dictionary:
	var value: Variant = of.get(key)
	return value if value is Dictionary else {}


static func _list(of: Dictionary, key: String) -> Array:
	var value: Variant = of.get(key)
	if not value is Array:
		return []
	return value.filter(func(each: Variant) -> bool: return each is String)
