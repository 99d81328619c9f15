@tool
extends SceneTree
## Run by Estragon from outside a project: says what the game to be played cannot load.
##
## In the editor (`--import --script`) it keeps a `.blend` from stopping the import of everything
## else where there is no Blender. Otherwise it prints one line of JSON and quits before autoloads
## enter the tree. ESTRAGON_CHECK_SCENE names the scene; the main scene if it is empty.

const MARK := "estragon-check "
const PROJECT := "res://project.godot"
const BLENDER := "filesystem/import/blender/enabled"
## What a game can be played without, and the class of its placeholder where it is abstract.
const DECORATION: Dictionary[String, String] = {
	"Texture2D": "ImageTexture",
	"Texture": "ImageTexture",
	"Mesh": "ArrayMesh",
	"Material": "StandardMaterial3D",
	"Shader": "Shader",
	"AudioStream": "AudioStreamWAV",
	"AudioBusLayout": "AudioBusLayout",
	"Font": "SystemFont",
	"Environment": "Environment",
	"Sky": "Sky",
	"CameraAttributes": "CameraAttributesPractical",
	"StyleBox": "StyleBoxEmpty",
	"Theme": "Theme",
	"SpriteFrames": "SpriteFrames",
	"LabelSettings": "LabelSettings",
	"Animation": "Animation",
	"AnimationLibrary": "AnimationLibrary",
	"Gradient": "Gradient",
	"VideoStream": "VideoStreamTheora",
	"LightmapGIData": "LightmapGIData",
	"VoxelGIData": "VoxelGIData",
}
## The class of a file where nothing says it; a PackedScene with such a name is a model.
const CLASS_OF_FILES: Dictionary[String, String] = {
	"blend glb gltf fbx dae": "PackedScene",
	"png jpg jpeg webp svg bmp tga exr hdr ktx ktx2 dds": "Texture2D",
	"wav ogg mp3": "AudioStream",
	"ttf otf woff woff2 fnt": "Font",
	"obj mesh": "Mesh",
	"material": "Material",
	"gdshader gdshaderinc": "Shader",
	"ogv": "VideoStream",
}


## A file that the game needs, or may need.
class Needed:
	extends RefCounted
	var path: String
	## As the file that needs it says; empty if it does not.
	var type: String
	## The first file that needs it.
	var by: String
	## Not for a class that is only named, and a file that code may load or not.
	var is_required: bool
	var is_loaded: bool
	var references: Array[String] = []


var _blender_before: Variant
var _files: Dictionary[String, Needed] = {}
## Files to be looked at, the required ones first.
var _required: Array[Needed] = []
var _optional: Array[Needed] = []
## The files of global classes and autoloads, by name.
var _named: Dictionary[String, String] = {}
var _load_call := RegEx.create_from_string("\\b(pre)?load\\(\\s*[\"']([^\"']+)[\"']\\s*\\)")
var _base := RegEx.create_from_string('\\bextends\\s+"([^"]+)"')
var _external := RegEx.create_from_string("(?m)^\\[ext_resource (.*)\\]\\s*$")
var _attribute := RegEx.create_from_string('(\\w+)="([^"]*)"')
var _identifier := RegEx.create_from_string("\\b[A-Za-z_]\\w*")


func _init() -> void:
	if Engine.is_editor_hint():
		# The importer of .blend reads it when the editor is made, which comes next.
		_blender_before = ProjectSettings.get_setting(BLENDER)
		ProjectSettings.set_setting(BLENDER, false)


func _initialize() -> void:
	if Engine.is_editor_hint():
		ProjectSettings.set_setting(BLENDER, _blender_before)
		return
	for autoload: Node in root.get_children():
		root.remove_child(autoload)
		autoload.queue_free()
	var scene := OS.get_environment("ESTRAGON_CHECK_SCENE")
	if not scene:
		scene = ProjectSettings.get_setting("application/run/main_scene", "")
	print(MARK + JSON.stringify(_check(scene)))
	quit()


## All files that do not load, whatever the reason.
func _check(scene: String) -> Array[Dictionary]:
	for each: Dictionary in ProjectSettings.get_global_class_list():
		_named[each["class"]] = each["path"]
	if scene:
		_need(scene, "PackedScene", PROJECT, true)
	for property: Dictionary in ProjectSettings.get_property_list():
		var setting: String = property["name"]
		if setting.begins_with("autoload/"):
			var value: String = ProjectSettings.get_setting(setting)
			var path := _absolute(value.trim_prefix("*"), PROJECT)
			_named[setting.trim_prefix("autoload/")] = path
			# Godot plays on without one that is not there, unless a script refers to it.
			_need(path, "", PROJECT, ResourceLoader.exists(path))
	while _required or _optional:
		var file: Needed = _required.pop_front() if _required else _optional.pop_front()
		_follow(file)
		file.is_loaded = _loads(file.path)
	return _failures()


func _need(reference: String, type: String, by: String, is_required: bool) -> void:
	var path := _absolute(reference, by)
	if by in _files:
		_files[by].references.append(path)
	var file := _files.get(path) as Needed
	if not file:
		file = Needed.new()
		file.path = path
		file.type = type
		file.by = by
		file.is_required = is_required
		_files[path] = file
		(_required if is_required else _optional).append(file)
	elif is_required and not file.is_required:
		file.is_required = true
		_optional.erase(file)
		_required.append(file)


func _absolute(reference: String, by: String) -> String:
	if reference.begins_with("uid://"):
		var id := ResourceUID.text_to_id(reference)
		return ResourceUID.get_id_path(id) if ResourceUID.has_id(id) else reference
	if reference.contains("://"):
		return reference
	return by.get_base_dir().path_join(reference).simplify_path()


## Notes everything that a file refers to.
func _follow(file: Needed) -> void:
	match file.path.get_extension():
		"gd":
			_follow_code(file, FileAccess.get_file_as_string(file.path))
		"tscn", "tres":
			var text := FileAccess.get_file_as_string(file.path)
			for found in _external.search_all(text):
				var attributes: Dictionary[String, String] = {}
				for each in _attribute.search_all(found.get_string(1)):
					attributes[each.get_string(1)] = each.get_string(2)
				var path := _absolute(attributes.get("uid", "uid://"), file.path)
				if path.begins_with("uid://"):
					path = attributes.get("path", path)
				_need(path, attributes.get("type", ""), file.path, file.is_required)
			if text.contains("\nscript/source = "):
				_follow_code(file, text.replace('\\"', '"'))
		"scn", "res":
			for dependency in ResourceLoader.get_dependencies(file.path):
				var path := dependency.get_slice("::", 2) if "::" in dependency else dependency
				_need(path, "", file.path, file.is_required)


func _follow_code(file: Needed, text: String) -> void:
	var names: Dictionary[String, bool] = {}
	for line in text.split("\n"):
		var code := _without_comment(line)
		for found in _load_call.search_all(code):
			var is_preloaded := found.get_string(1) != ""
			if is_preloaded or file.is_required:
				_need(found.get_string(2), "", file.path, file.is_required and is_preloaded)
		for found in _base.search_all(code):
			_need(found.get_string(1), "Script", file.path, file.is_required)
		for found in _identifier.search_all(code):
			names[found.get_string()] = true
	for each in names:
		if each in _named:
			_need(_named[each], "", file.path, false)


static func _without_comment(line: String) -> String:
	var at := line.find("#")
	while at >= 0 and line.count('"', 0, at) % 2 == 1:
		at = line.find("#", at + 1)
	return line if at < 0 else line.left(at)


func _loads(path: String) -> bool:
	if not ResourceLoader.exists(path):
		return false
	var resource := load(path)
	if resource is Script:
		return _compiles(resource as Script)
	if resource is PackedScene:
		var state := (resource as PackedScene).get_state()
		for node in state.get_node_count():
			for property in state.get_node_property_count(node):
				var value: Variant = state.get_node_property_value(node, property)
				# One inside the scene; those in files are looked at by themselves.
				if value is Script and "::" in (value as Script).resource_path:
					if not _compiles(value as Script):
						return false
	return resource != null


static func _compiles(script: Script) -> bool:
	if script.has_method("is_abstract") and script.call("is_abstract"):
		return true
	return script.can_instantiate()


func _failures() -> Array[Dictionary]:
	var found: Array[Dictionary] = []
	for file: Needed in _files.values():
		if not file.is_loaded:
			(
				found
				. append(
					{
						"file": file.path,
						"by": file.by,
						"required": file.is_required,
						"exists": FileAccess.file_exists(file.path),
						"placeholder": _placeholder(file),
						"references": file.references,
					}
				)
			)
	return found


## The class that can stand in for a file; empty if the game cannot be played without it.
static func _placeholder(file: Needed) -> String:
	var type := file.type
	var usual := ""
	for extensions in CLASS_OF_FILES:
		if file.path.get_extension().to_lower() in extensions.split(" "):
			usual = CLASS_OF_FILES[extensions]
	if not ClassDB.class_exists(type) or type == "Resource":
		type = usual
	if type == "PackedScene":
		return type if usual == type else ""
	for each in DECORATION:
		if ClassDB.is_parent_class(type, each):
			var is_abstract := type == each or not ClassDB.can_instantiate(type)
			return DECORATION[each] if is_abstract or each.begins_with("Texture") else type
	return ""
