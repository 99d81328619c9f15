@tool
extends EditorPlugin
## The addon in the editor. Its nodes are there without it; it offers templates for controllers.

const TEMPLATES: String = "res://addons/godot_rl_agents/script_templates"
const SEARCH_PATH: String = "editor/script/templates_search_path"


## Put the templates where "New script" looks for them; what is there already stays.
func _enable_plugin() -> void:
	var target: String = ProjectSettings.get_setting(SEARCH_PATH, "res://script_templates")
	for base: String in DirAccess.get_directories_at(TEMPLATES):
		var folder: String = target.path_join(base)
		DirAccess.make_dir_recursive_absolute(folder)
		for file: String in DirAccess.get_files_at(TEMPLATES.path_join(base)):
			if not FileAccess.file_exists(folder.path_join(file)):
				DirAccess.copy_absolute(
					TEMPLATES.path_join(base).path_join(file), folder.path_join(file)
				)
