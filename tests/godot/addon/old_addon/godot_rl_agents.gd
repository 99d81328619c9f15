@tool
extends EditorPlugin
## As older addons do it, it names its types with an icon that is imported later.


func _enter_tree():
	add_custom_type("OldSync", "Node", preload("sync.gd"), preload("icon.svg"))


func _exit_tree():
	remove_custom_type("OldSync")
