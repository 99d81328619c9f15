extends FeatureScene
## Walk in VR without getting sick: goals, an obstacle field, a maze, or seed 003's course.
##
##   godot --path godot res://scenes/features/vr_locomotion_test.tscn --parameter.task=maze
##
## Parameters: `task`, `rigs`, `actions` (continuous, discrete), `goal_min_m`, `goal_max_m`,
## `obstacle_count`, `maze_cells`, `max_steps` and the limits and rewards of
## VRNavigationAIController.

const ARENA: PackedScene = preload("locomotion_arena.tscn")
const NAVIGATION: Script = preload("vr_navigation_controller.gd")
const COURSE: Script = preload("res://rl_training/vr_locomotion_controller.gd")

## What there is to do; the parameter `task` goes first.
@export_enum("goals", "obstacles", "maze", "course") var task: String = "goals"

@onready var _view: SpectatorView = $SpectatorView


func _ready() -> void:
	super()
	var arenas: Array[Node] = find_children("*", "LocomotionArena", false, false)
	if is_headless():
		_view.queue_free()
	else:
		_view.show_arena(arenas[0] as LocomotionArena, self)


func make_island(_index: int) -> Node3D:
	var arena: LocomotionArena = ARENA.instantiate()
	arena.task = RLParameters.text("task", task)
	var controller: Node3D = arena.get_node(^"Rig/AIController3D")
	controller.set_script(COURSE if arena.task == "course" else NAVIGATION)
	return arena
