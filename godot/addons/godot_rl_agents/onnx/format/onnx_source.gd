@tool
extends RefCounted
## Where a model's bytes come from: a `.onnx` file anywhere, or one that Godot imported.
##
## Large tensors may lie in files beside the model; only in its own folder, or below it.

var error: String = ""
var bytes: PackedByteArray = []

var _folder: String = ""
var _parts: Dictionary[String, PackedByteArray] = {}


## Open `res://`, `user://` or a full path. In an exported game the imported copy is opened.
static func open(path: String) -> RLAddon.OnnxSource:
	var source: RLAddon.OnnxSource = RLAddon.OnnxSource.new()
	if FileAccess.file_exists(path):
		source._folder = path.get_base_dir()
		source.bytes = source._read(path)
		return source
	if ResourceLoader.exists(path):
		var imported: Resource = ResourceLoader.load(path)
		if imported is RLAddon.OnnxResource:
			source.bytes = (imported as RLAddon.OnnxResource).bytes
			source._parts = (imported as RLAddon.OnnxResource).parts
			return source
	source.error = "there is no file %s" % path
	return source


static func of(resource: RLAddon.OnnxResource) -> RLAddon.OnnxSource:
	var source: RLAddon.OnnxSource = RLAddon.OnnxSource.new()
	source.bytes = resource.bytes
	source._parts = resource.parts
	return source


## The whole content of a file beside the model; sets `error` if there is none.
func part(location: String) -> PackedByteArray:
	if _parts.has(location):
		return _parts[location]
	if location.is_absolute_path() or ".." in location or "\\" in location or not _folder:
		error = "its weights in '%s' are not beside it" % location
		return PackedByteArray()
	_parts[location] = _read(_folder.path_join(location))
	return _parts[location]


## Every file beside the model that was read, by its name.
func parts() -> Dictionary[String, PackedByteArray]:
	return _parts


func _read(path: String) -> PackedByteArray:
	var file: FileAccess = FileAccess.open(path, FileAccess.READ)
	if not file:
		error = "cannot open %s: %s" % [path, error_string(FileAccess.get_open_error())]
		return PackedByteArray()
	var size: int = file.get_length()
	if size > RLAddon.OnnxBudget.LARGEST_FILE:
		error = "%s has %d bytes, more than %d" % [path, size, RLAddon.OnnxBudget.LARGEST_FILE]
		return PackedByteArray()
	return file.get_buffer(size)
