class_name MultiAgentVRController
extends FeatureAgent
## A person among others: `obs` has 12 numbers, the own place and speed and the 3 nearest others;
## `teams` has 4, the own role and theirs; `move` is a direction on the floor.

const NEAREST: int = 3

## 1 chases, −1 runs, 0 gathers.
var role: int = 0
## Where to walk, in the arena's axes.
var wish: Vector2 = Vector2.ZERO
## Of this episode.
var collisions: int = 0
## What the arena last thought of its place.
var potential: float = 0.0
var other_agents: Array[MultiAgentVRController] = []

@onready var player_body: VRRig = get_parent()


func get_obs() -> Dictionary:
	var at: Vector3 = player_body.position
	var seen: Array = [at.x / 10.0, at.z / 10.0, player_body.velocity.length() / 5.0]
	var teams: Array = [float(role)]
	for other: MultiAgentVRController in _get_nearest_agents(NEAREST):
		var way: Vector3 = other.player_body.position - at
		seen.append_array([way.x / 20.0, way.z / 20.0, way.length() / 20.0])
		teams.append(1.0 if other.role == role else -1.0)
	while teams.size() <= NEAREST:
		seen.append_array([0.0, 0.0, 0.0])
		teams.append(0.0)
	return {"obs": seen, "teams": teams}


func get_action_space() -> Dictionary:
	return continuous(["move"], 2)


func set_action(action: Variant) -> void:
	super(action)
	wish = Vector2(axis(action, "move", 0), axis(action, "move", 1)).limit_length()


## The distance to the nearest one of another role; −1 if there is none.
func nearest_opponent_m() -> float:
	for other: MultiAgentVRController in _get_nearest_agents(other_agents.size()):
		if other.role != role:
			return other.player_body.position.distance_to(player_body.position)
	return -1.0


func _get_nearest_agents(count: int) -> Array:
	var at: Vector3 = player_body.position
	var sorted: Array = other_agents.duplicate()
	sorted.sort_custom(
		func(a: MultiAgentVRController, b: MultiAgentVRController) -> bool:
			return (
				a.player_body.position.distance_squared_to(at)
				< b.player_body.position.distance_squared_to(at)
			)
	)
	return sorted.slice(0, count)
