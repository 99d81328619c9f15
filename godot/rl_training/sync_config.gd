extends Node
## Sets up the scene's Sync for training: add it to a scene with a node named Sync, or make it an
## autoload beside a Sync that is one.

## How long an action lasts.
@export_range(1, 60, 1, "suffix:ticks") var action_repeat: int = 6
## How many times faster than real time a game with a window runs.
@export_range(0.1, 32.0, 0.1) var speed_up: float = 8.0


func _ready() -> void:
	var sync: Sync = get_node_or_null(^"/root/GodotRLAgentsSync")
	if not sync:
		sync = get_parent().get_node_or_null(^"Sync")
	if not sync:
		push_warning("SpaceTime: sync_config.gd found no Sync")
		return
	sync.control_mode = Sync.ControlModes.TRAINING
	sync.action_repeat = action_repeat
	sync.speed_up = speed_up
	print("[RL] Sync node configured for training")
