extends Node
## Runs last in every tick and frame: collects the rewards of episodes that ended, and passes input
## on to Sync, because a subclass of Sync may define `_input` itself.

const LAST: int = 1 << 30

## Whether scripts of the game are running. While Godot reports contacts (signals such as
## body_entered) the physics space must not be queried, so sensors return their last observation.
static var in_scripts: bool = true

var _lockstep: RLAddon.Lockstep


func _init(lockstep: RLAddon.Lockstep) -> void:
	_lockstep = lockstep
	process_priority = LAST
	process_physics_priority = LAST


func _physics_process(_delta: float) -> void:
	RLAddon.Episode.pay()
	in_scripts = false


func _process(_delta: float) -> void:
	in_scripts = false


func _input(event: InputEvent) -> void:
	_lockstep.take_input(event)
