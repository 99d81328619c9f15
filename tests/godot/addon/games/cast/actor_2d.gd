extends AIController2D
## An actor in 2D: what it sees and may do, as the play says; its episodes last `lifetime` ticks.

const Part := preload("part.gd")

var says: Dictionary = {}

var _part: Part


func _ready() -> void:
	_part = Part.new(self, says)


func _physics_process(_delta: float) -> void:
	_part.tick()


func get_obs() -> Dictionary:
	return _part.see()


func get_reward() -> float:
	return _part.reward()


func get_action_space() -> Dictionary:
	return says["actions"]


func get_action_mask() -> Dictionary:
	return _part.mask()


func set_action(action) -> void:
	_part.act(action)
