class_name BugReproductionController
extends AIController3D
## Rewards an agent for reproducing a known bug, recognised by its signature in the game's log.
##
## Extend the game's own controller with it, or use it in its place: override what the agent sees
## and does. `estragon judge hunt` reports the bug as soon as it is reproduced, with a short replay;
## a trainer learns to reproduce it.

const REPRODUCED_REWARD: float = 100.0
## Compiled where it is needed: Godot 4.4 has no Logger, and would reject a script that extends it.
const LOG: String = """extends Logger
var lines: PackedStringArray = []

func _log_message(message: String, _error: bool) -> void:
	lines.append(message)

func _log_error(function, file, line, code, rationale, _notify, _type, _backtraces) -> void:
	lines.append("%s at %s (%s:%d)" % [rationale if rationale else code, function, file, line])
"""

## The name of the bug, for reports.
@export var target_bug: String = "bug"
## A regular expression; a line of the log that matches it is the bug.
@export var signature: String = ""
## What a step earns while the agent turns fast, which brings on bugs that depend on timing.
@export_range(0.0, 10.0, 0.1) var turning_reward: float = 0.0
## How fast counts as turning fast.
@export_range(0.1, 20.0, 0.1, "suffix:rad/s") var turning_speed: float = 2.0

var bug_reproduced: bool = false

var _pattern: RegEx
var _log: RefCounted


func _ready() -> void:
	super()
	_pattern = RegEx.create_from_string(signature)
	if ClassDB.class_exists("Logger"):
		var script: GDScript = GDScript.new()
		script.source_code = LOG
		script.reload()
		_log = script.new()
		OS.call("add_logger", _log)


func _exit_tree() -> void:
	if _log:
		OS.call("remove_logger", _log)


func get_reward() -> float:
	if signature and _log and not bug_reproduced and _has_signature():
		bug_reproduced = true
		done = true
		reward += REPRODUCED_REWARD
	if turning_reward and _player is RigidBody3D:
		reward += turning_reward * float(_player.angular_velocity.length() > turning_speed)
	return reward


func get_info() -> Dictionary:
	return {"bug_reproduced": bug_reproduced, "target_bug": target_bug}


func reset() -> void:
	super()
	bug_reproduced = false


func _has_signature() -> bool:
	var lines: PackedStringArray = _log.lines
	_log.lines = PackedStringArray()
	for line: String in lines:
		if _pattern.search(line):
			return true
	return false
