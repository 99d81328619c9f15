extends Node2D
## Orchard: eat fruit, keep off the thorns. A 2D game with discrete actions.
##
## One agent an arena. It runs up, down, left or right or stands, sees the thorns with the rays of a
## RaycastSensor2D and knows where the fruit is by a PositionSensor2D. A fruit gives 1 and the next
## one grows; a thorn costs 1 and ends the episode; after 20 seconds it is cut off. Coming nearer to
## the fruit gives a little, so that learning starts at once.
##
## A trainer may set the parameters of `orchard_parameters.tres`; `parameters.yaml` has lessons.
##
## Fruit in an episode: 0.2 for a random player, 10 for one that learned for 100,000 steps.
##
## Play it yourself with the arrow keys:
##
##   godot --path godot res://examples/orchard/orchard.tscn --copies=1

const ARENA: PackedScene = preload("orchard_arena.tscn")
const SPACING: float = 560.0
const BACKGROUND: Color = Color("39422f")

## How many arenas there are; `--copies=N` on the command line goes first.
@export_range(1, 256) var copies: int = 16

@onready var _camera: Camera2D = $Camera2D


func _ready() -> void:
	RenderingServer.set_default_clear_color(BACKGROUND)
	copies = ExampleCopies.count(copies)
	for index: int in copies:
		var copy: OrchardArena = ARENA.instantiate()
		copy.position = SPACING * ExampleCopies.place(index, copies)
		add_child(copy)
	_fit_camera()
	get_viewport().size_changed.connect(_fit_camera)


func _fit_camera() -> void:
	var wanted: float = SPACING * ExampleCopies.columns(copies)
	var size: Vector2 = get_viewport_rect().size
	_camera.zoom = Vector2.ONE * minf(size.x, size.y) / wanted
