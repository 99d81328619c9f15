@tool
extends Resource
## A `.onnx` file as a resource of the project, so that it lands in exported games.

## The file's bytes.
@export var bytes: PackedByteArray = []
## The files beside it that hold some of its weights, by name.
@export var parts: Dictionary[String, PackedByteArray] = {}
