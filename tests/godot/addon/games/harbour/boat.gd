extends Node3D
## Drives along a line; a controller of the usual kind hangs below it.

var speed := 0.0
var ticks := 0

@onready var ai_controller: AIController3D = $AIController3D
@onready var flag: Sprite3D = $Flag
@onready var house: Node3D = $"../House"
@onready var lamp: Node3D = $"../Crane/Lamp"


func _ready() -> void:
	ai_controller.init(self)
	assert(flag.texture.get_width() == 8, "what can be imported is imported")
	assert(house.position.x == 3.0 and lamp.position.y == 2.0, "placeholders keep their places")
	assert(Sounds.CRASH is AudioStream and Sounds.HORN is AudioStream, "sounds have placeholders")


func _physics_process(delta: float) -> void:
	ticks += 1
	position.x += speed * delta
	ai_controller.reward += speed * Settings.reward_scale
	if ai_controller.needs_reset or ticks >= 200:
		ai_controller.done = true
		ai_controller.reset()
		position.x = 0.0
		ticks = 0
