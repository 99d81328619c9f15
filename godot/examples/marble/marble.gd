extends Node3D
## Marble: roll to the goal, past the pillars, and do not fall off. A 3D game with continuous
## actions and real physics.
##
## One agent an arena. It pushes the marble along the floor with up to 6 newtons, and sees pillars
## and the floor's edge with two rings of rays of a RaycastSensor3D. The goal gives 1, falling costs
## 1, and both end the episode; after 15 seconds it is cut off. Coming nearer to the goal gives a
## little, so that learning starts at once.
##
## A trainer may set the parameters of `marble_parameters.tres`; `parameters.yaml` makes a harder
## game of it, in lessons.
##
## Episodes that reach the goal: 4% for a random player, all for one that learned for 100,000 steps.
##
## Play it yourself with the arrow keys:
##
##   godot --path godot res://examples/marble/marble.tscn --copies=1

const ARENA: PackedScene = preload("marble_arena.tscn")
const SPACING: float = 18.0

## How many arenas there are; `--copies=N` on the command line goes first.
@export_range(1, 256) var copies: int = 16

@onready var _camera: Camera3D = $Camera3D


func _ready() -> void:
	copies = ExampleCopies.count(copies)
	for index: int in copies:
		var copy: MarbleArena = ARENA.instantiate()
		var place: Vector2 = SPACING * ExampleCopies.place(index, copies)
		copy.position = Vector3(place.x, 0.0, place.y)
		add_child(copy)
	_camera.position *= ExampleCopies.columns(copies)
