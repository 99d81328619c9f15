@tool
extends EditorImportPlugin
## Makes `.onnx` files resources of the project; a file that cannot run is refused with its reason.


func _get_importer_name() -> String:
	return "godot_rl_agents.onnx"


func _get_visible_name() -> String:
	return "ONNX model"


func _get_recognized_extensions() -> PackedStringArray:
	return ["onnx"]


func _get_save_extension() -> String:
	return "res"


func _get_resource_type() -> String:
	return "Resource"


func _get_priority() -> float:
	return 1.0


func _get_import_order() -> int:
	return 0


func _get_preset_count() -> int:
	return 1


func _get_preset_name(_preset: int) -> String:
	return "Default"


func _get_import_options(_path: String, _preset: int) -> Array[Dictionary]:
	return []


func _get_option_visibility(_path: String, _option: StringName, _options: Dictionary) -> bool:
	return true


func _import(
	source_file: String,
	save_path: String,
	_options: Dictionary,
	_platform_variants: Array[String],
	_gen_files: Array[String]
) -> int:
	var source: RLRuntime.OnnxSource = RLRuntime.OnnxSource.open(source_file)
	var file: RLRuntime.OnnxFile = RLRuntime.OnnxFile.new()
	if source.error or not file.read(source):
		push_error("%s: %s" % [source_file, source.error if source.error else file.error])
		return ERR_FILE_CORRUPT
	var model: RLRuntime.OnnxResource = RLRuntime.OnnxResource.new()
	model.bytes = source.bytes
	model.parts = source.parts()
	var target: String = "%s.%s" % [save_path, _get_save_extension()]
	return ResourceSaver.save(model, target, ResourceSaver.FLAG_COMPRESS)
