@tool
extends RefCounted
## Where a model's bytes come from: a `.onnx` file anywhere, one that Godot imported, or the
## `policy.onnx` in a `.zip` that Estragon's trainer saved.
##
## Large tensors may lie in files beside the model; only in its own folder, or below it.

const IN_ZIP: String = "policy.onnx"
const ZIP_END: int = 0x06054b50
const ZIP_ENTRY: int = 0x02014b50

var error: String = ""
var bytes: PackedByteArray = []

var _folder: String = ""
var _parts: Dictionary[String, PackedByteArray] = {}


## Open `res://`, `user://` or a full path. In an exported game the imported copy is opened.
static func open(path: String) -> RLRuntime.OnnxSource:
	var source: RLRuntime.OnnxSource = RLRuntime.OnnxSource.new()
	if FileAccess.file_exists(path):
		source._folder = path.get_base_dir()
		source.bytes = source._read(path)
		if path.get_extension() == "zip" and not source.error:
			source.bytes = source._from_zip(source.bytes)
		return source
	if ResourceLoader.exists(path):
		var imported: Resource = ResourceLoader.load(path)
		if imported is RLRuntime.OnnxResource:
			source.bytes = (imported as RLRuntime.OnnxResource).bytes
			source._parts = (imported as RLRuntime.OnnxResource).parts
			return source
	source.error = "there is no file %s" % path
	return source


static func of(resource: RLRuntime.OnnxResource) -> RLRuntime.OnnxSource:
	var source: RLRuntime.OnnxSource = RLRuntime.OnnxSource.new()
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


## The policy in an archive, which is not compressed.
func _from_zip(archive: PackedByteArray) -> PackedByteArray:
	var end: int = archive.size() - 22
	while end >= 0 and archive.decode_u32(end) != ZIP_END:
		end -= 1
	var count: int = archive.decode_u16(end + 10) if end >= 0 else 0
	var at: int = archive.decode_u32(end + 16) if end >= 0 else 0
	for _entry: int in count:
		if at + 46 > archive.size() or archive.decode_u32(at) != ZIP_ENTRY:
			break
		var name_size: int = archive.decode_u16(at + 28)
		if archive.slice(at + 46, at + 46 + name_size).get_string_from_utf8() == IN_ZIP:
			return _stored(archive, at)
		at += 46 + name_size + archive.decode_u16(at + 30) + archive.decode_u16(at + 32)
	error = "there is no %s in it: it was not saved by Estragon's trainer, or without onnx" % IN_ZIP
	return PackedByteArray()


func _stored(archive: PackedByteArray, entry: int) -> PackedByteArray:
	var size: int = archive.decode_u32(entry + 24)
	var header: int = archive.decode_u32(entry + 42)
	if archive.decode_u16(entry + 10) == 0 and header + 30 <= archive.size():
		var sizes: int = archive.decode_u16(header + 26) + archive.decode_u16(header + 28)
		var start: int = header + 30 + sizes
		if start + size <= archive.size():
			return archive.slice(start, start + size)
	error = "its %s is damaged or compressed" % IN_ZIP
	return PackedByteArray()


func _read(path: String) -> PackedByteArray:
	var file: FileAccess = FileAccess.open(path, FileAccess.READ)
	if not file:
		error = "cannot open %s: %s" % [path, error_string(FileAccess.get_open_error())]
		return PackedByteArray()
	var size: int = file.get_length()
	if size > RLRuntime.OnnxBudget.LARGEST_FILE:
		error = "%s has %d bytes, more than %d" % [path, size, RLRuntime.OnnxBudget.LARGEST_FILE]
		return PackedByteArray()
	return file.get_buffer(size)
