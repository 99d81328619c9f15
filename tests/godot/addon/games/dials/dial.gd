extends Node2D
## An agent whose episode lasts some ticks. What it reads at the start of one, it sees.
##
##   asks         done, and a reset in the next tick
##   at_once      done, and reset in the same tick
##   reset_first  reset, and only then done
##   no_reset     done, but the controller is never reset
##   limit        only reset_after ends an episode

const Game := preload("dials_game.gd")
const Controller := preload("dial_controller.gd")

var number: int = 0
var count: int = 0
var speed: float = -1.0
var wind: float = -1.0
var map: String = ""
var changes: int = 0
var ai_controller: Controller = Controller.new()

var _order: String = Game.option("order", "asks")


func _ready() -> void:
	ai_controller.reset_after = 10 + number if _order == "limit" else 1000
	add_child(ai_controller)
	ai_controller.init(self)
	ai_controller.needs_reset = true
	RLParameters.changed().connect(_on_changed)


func _physics_process(_delta: float) -> void:
	if ai_controller.needs_reset:
		ai_controller.reset()
		_restart()
		return
	count += 1
	if count == 10 + number and _order != "limit":
		_end()


func _end() -> void:
	match _order:
		"asks":
			ai_controller.done = true
			ai_controller.needs_reset = true
		"at_once":
			ai_controller.done = true
			ai_controller.reset()
			_restart()
		"reset_first":
			ai_controller.reset()
			_restart()
			ai_controller.done = true
		"no_reset":
			ai_controller.done = true
			_restart()


func _restart() -> void:
	count = 0
	speed = RLParameters.number("speed", 1.0, ai_controller)
	wind = RLParameters.number("wind", 0.5)
	map = RLParameters.text("map", "small", ai_controller)
	RLParameters.number("unsaid", 3.0)


func _on_changed(agent: Node) -> void:
	if agent == ai_controller:
		changes += 1
