extends CharacterBody3D
## Walks half a metre a tick, into the goal; then it begins anew.

@onready var ai_controller: AIController3D = $AIController3D


func _ready() -> void:
	ai_controller.init(self)


func _physics_process(_delta: float) -> void:
	if ai_controller.needs_reset:
		ai_controller.reset()
		position = Vector3.ZERO
		return
	position.x += 0.5
	ai_controller.reward += 1.0


func _on_goal_body_entered(_body: Node3D) -> void:
	ai_controller.reward += 10.0
	ai_controller.done = true
	ai_controller.needs_reset = true
