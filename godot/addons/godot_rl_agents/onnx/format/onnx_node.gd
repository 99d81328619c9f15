@tool
extends RefCounted
## One operator of a graph: what it is, what it reads and makes, and its attributes.

var name: String = ""
var op: String = ""
var domain: String = ""
var inputs: PackedStringArray = []
var outputs: PackedStringArray = []
## Name → int, float, String, OnnxTensor, PackedInt64Array, PackedFloat32Array; null if unreadable.
var attributes: Dictionary[String, Variant] = {}
## What is wrong with the attributes that were asked for, or "".
var error: String = ""

var _asked: Dictionary[String, bool] = {}


## As `Gemm "/net/0"`, for messages; a node without a name is known by its first output.
func describe() -> String:
	var known_by: String = name if name else (outputs[0] if outputs else "?")
	var where: String = "" if domain in ["", "ai.onnx"] else domain + "."
	return '%s%s "%s"' % [where, op, known_by]


func has(attribute: String) -> bool:
	_asked[attribute] = true
	return attributes.has(attribute)


func whole(attribute: String, otherwise: int = 0) -> int:
	return _read(attribute, otherwise)


func real(attribute: String, otherwise: float = 0.0) -> float:
	return _read(attribute, otherwise)


func text(attribute: String, otherwise: String = "") -> String:
	return _read(attribute, otherwise)


func wholes(attribute: String, otherwise: PackedInt64Array = []) -> PackedInt64Array:
	return _read(attribute, otherwise)


func reals(attribute: String, otherwise: PackedFloat32Array = []) -> PackedFloat32Array:
	return _read(attribute, otherwise)


func tensor(attribute: String) -> RLRuntime.OnnxTensor:
	if not has(attribute):
		return null
	var found: Variant = attributes[attribute]
	if not found is RLRuntime.OnnxTensor:
		error = "its attribute '%s' is not a tensor" % attribute
		return null
	return found


## Let attributes pass that change nothing here.
func ignore(names: PackedStringArray) -> void:
	for attribute: String in names:
		_asked[attribute] = true


## An attribute that nobody asked for, or "".
func unknown_attribute() -> String:
	for attribute: String in attributes:
		if not _asked.has(attribute):
			return attribute
	return ""


func _read(attribute: String, otherwise: Variant) -> Variant:
	if not has(attribute):
		return otherwise
	var found: Variant = attributes[attribute]
	if typeof(found) == typeof(otherwise):
		return found
	error = "its attribute '%s' is of another type than it should be" % attribute
	return otherwise
