extends Node
## Notices when it enters the tree while the project is only checked.

var reward_scale := 0.5


func _enter_tree() -> void:
	if OS.has_environment("ESTRAGON_CHECK_SCENE"):
		push_error("the check has played the game")
