extends Node
## The last to run in every tick and frame: the rewards of episodes that ended are taken. Input
## comes to Sync through it, for a game's own Sync may have an `_input`.

const LAST: int = 1 << 30

var _lockstep: RLAddon.Lockstep


func _init(lockstep: RLAddon.Lockstep) -> void:
	_lockstep = lockstep
	process_priority = LAST
	process_physics_priority = LAST


func _physics_process(_delta: float) -> void:
	RLAddon.Episode.pay()
	RLAddon.Tick.in_scripts = false


func _process(_delta: float) -> void:
	RLAddon.Tick.in_scripts = false


func _input(event: InputEvent) -> void:
	_lockstep.take_input(event)
