class_name Player
extends Node2D
## Walks along a line, to its stall or away from it.

@export var policy: Policy

var stall: float = 5.0
var speed: float = 0.0
var place: float = 0.0

@onready var controller: AIController2D = $AIController2D


func _ready() -> void:
	controller.init(self)


func _physics_process(delta: float) -> void:
	if controller.needs_reset:
		controller.reset()
		place = 0.0
		return
	place = clampf(place + speed * delta * 10.0, -10.0, 10.0)
	controller.reward -= absf(place - stall) * 0.01
	if absf(place - stall) < 0.5:
		Game.sold += 1
		controller.reward += 1.0
		controller.done = true
		controller.needs_reset = true
