class_name FeatureAgent
extends AIController3D
## The controller of an agent on a FeatureIsland.

const NOTHING: Dictionary = {"success": false}

## A FeatureIsland. Named here, the two classes would keep each other in memory at exit.
var island: Node3D
## How the episode that ended since the last action ended, or empty.
var summary: Dictionary = {}
## For the HTTP API.
var ticks: int:
	get:
		return island.ticks


func _ready() -> void:
	# The island keeps the time limit.
	reset_after = 1 << 30


func get_info() -> Dictionary:
	return summary if summary else NOTHING


## Override and call it first.
func set_action(_action: Variant) -> void:
	summary = {}


## `count` continuous actions of each name.
static func continuous(names: Array[String], count: int = 1) -> Dictionary:
	var space: Dictionary = {}
	for key: String in names:
		space[key] = {"size": count, "action_type": "continuous"}
	return space


## A continuous action within −1 and 1.
static func axis(action: Dictionary, key: String, index: int = 0) -> float:
	return clampf(action[key][index], -1.0, 1.0)
