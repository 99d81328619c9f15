extends Node2D
## Counts its ticks and earns one a tick; as games are commonly written.
##
##   --lifetime=20   after so many ticks it is done, with 10 more
##   --asks=1        it then asks for a reset, carried out in the next tick; else it resets at once
##   --limit=1000    reset_after
##   --says_done=1   a reset is also called done, as many games do
##   --demos=1       its expert is recorded, every --hold=2 ticks; each to its own with --demos=2
##   --nan=30        in this tick of its life it sees NaN
##   --masks=1       its choices are masked; --policies=1: every counter has its own policy

const Game := preload("counter_game.gd")
const Controller := preload("counter_controller.gd")

var number: int = 0
var count: int = 0
var age: int = 0
var ends: int = 0
var ai_controller: Controller = Controller.new()

var _lifetime: int = Game.option("lifetime", 1 << 30)
var _asks: bool = Game.option("asks", 0) == 1
var _says_done: bool = Game.option("says_done", 0) == 1


func _ready() -> void:
	ai_controller.name = "AIController2D"
	ai_controller.reset_after = Game.option("limit", 1000)
	if Game.option("demos", 0):
		ai_controller.control_mode = AIController2D.ControlModes.RECORD_EXPERT_DEMOS
		ai_controller.expert_demo_save_path = "res://demos%d.json" % _demo_file()
		ai_controller.action_repeat = Game.option("hold", 2)
		ai_controller.remove_last_episode_key = InputEventKey.new()
		ai_controller.remove_last_episode_key.keycode = KEY_DELETE
	if Game.option("policies", 0) == 1:
		ai_controller.policy_name = "policy%d" % number
	add_child(ai_controller)
	ai_controller.init(self)


func _physics_process(_delta: float) -> void:
	age += 1
	if ai_controller.needs_reset:
		ai_controller.reset()
		_restart()
		return
	count += 1
	ai_controller.reward += 1.0
	if count == _lifetime:
		ends += 1
		ai_controller.reward += 10.0
		ai_controller.done = true
		if _asks:
			ai_controller.needs_reset = true
		else:
			ai_controller.reset()
			_restart()


func _restart() -> void:
	count = 0
	if _says_done:
		ai_controller.done = true


func _demo_file() -> int:
	return number if Game.option("demos", 0) == 2 else 0
