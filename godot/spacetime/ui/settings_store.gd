class_name SettingsStore
extends RefCounted
## The settings of the menu, and the file that keeps them.

const SECTION: String = "settings"
const FILE: String = "user://spacetime_settings.cfg"

var values: Dictionary[String, float] = {}


func read(path: String = FILE) -> void:
	var file: ConfigFile = ConfigFile.new()
	if file.load(path) != OK:
		return
	for key: String in file.get_section_keys(SECTION):
		var value: Variant = file.get_value(SECTION, key)
		if value is float:
			values[key] = value


func save(path: String = FILE) -> Error:
	var file: ConfigFile = ConfigFile.new()
	for key: String in values:
		file.set_value(SECTION, key, values[key])
	return file.save(path)
