extends Node3D
## A red ball swings from left to right before a camera; who says on which side it is earns one.

const PERIOD_TICKS: float = 240.0

var ticks: int = 0

@onready var ball: MeshInstance3D = $Ball
@onready var ai_controller: AIController3D = $AIController3D


func _ready() -> void:
	ai_controller.init(self)


func _physics_process(_delta: float) -> void:
	ticks += 1
	ball.position.x = 2.5 * sin(TAU * ticks / PERIOD_TICKS)
	ai_controller.reward += 1.0 if (ball.position.x > 0.0) == ai_controller.says_right else 0.0
	if ai_controller.needs_reset:
		ai_controller.reset()
