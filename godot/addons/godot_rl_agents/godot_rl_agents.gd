@tool
extends EditorPlugin
## The addon in the editor: its nodes are there without it; it imports ONNX models, offers
## templates for controllers, and starts the training from Project → Tools.

const ONNX_IMPORTER: Script = preload("onnx/format/onnx_import_plugin.gd")
const TRAIN_MENU: Script = preload("train_menu.gd")
const TEMPLATES: String = "res://addons/godot_rl_agents/script_templates"
const SEARCH_PATH: String = "editor/script/templates_search_path"

var _onnx_importer: EditorImportPlugin = ONNX_IMPORTER.new()


func _enter_tree() -> void:
	add_import_plugin(_onnx_importer)
	add_tool_menu_item(TRAIN_MENU.TITLE, TRAIN_MENU.open)
	print("[Godot RL Agents] Plugin loaded")


func _exit_tree() -> void:
	remove_import_plugin(_onnx_importer)
	remove_tool_menu_item(TRAIN_MENU.TITLE)


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
