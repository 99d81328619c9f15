@tool
extends EditorPlugin
## Its icon is not imported yet when a fresh clone is opened.

const Crane := preload("crane.gd")
const ICON := preload("icon.svg")


func _enter_tree() -> void:
	add_custom_type("Crane", "Node3D", Crane, ICON)


func _exit_tree() -> void:
	remove_custom_type("Crane")
