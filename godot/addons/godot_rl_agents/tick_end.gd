extends Node
## The last to act in every tick and frame: what ended in it is reckoned up.

const LAST: int = 1 << 30


func _init() -> void:
	process_priority = LAST
	process_physics_priority = LAST


func _physics_process(_delta: float) -> void:
	RLAddon.Episode.pay()
	RLAddon.Tick.in_scripts = false


func _process(_delta: float) -> void:
	RLAddon.Tick.in_scripts = false
