class_name MarbleArena
extends Node3D
## The floor of one marble, with pillars and a goal on it.

## Half the side of the floor.
const HALF: float = 6.0
## Nothing stands nearer to the edge than this.
const MARGIN: float = 1.2
## Nothing stands nearer to a pillar than this.
const CLEARANCE: float = 2.0
## The marble starts at least this far from the goal.
const WAY: float = 5.0

## What this episode's chances are drawn from.
var _random: RandomNumberGenerator = RandomNumberGenerator.new()

@onready var goal: Node3D = $Goal
@onready var _pillars: Array[Node] = $Pillars.get_children()


## Begin an episode: everything stands somewhere else, drawn from the seed. Returns the start.
func restart(episode_seed: int) -> Vector3:
	_random.seed = episode_seed
	goal.position = _draw_place()
	var start: Vector3 = _draw_place()
	while start.distance_to(goal.position) < WAY:
		start = _draw_place()
	var taken: Array[Vector3] = [goal.position, start]
	for pillar: Node3D in _pillars:
		var place: Vector3 = _draw_place()
		while _is_near(place, taken):
			place = _draw_place()
		pillar.position = place
		taken.append(place)
	return start


func _draw_place() -> Vector3:
	var reach: float = HALF - MARGIN
	return Vector3(_random.randf_range(-reach, reach), 0.0, _random.randf_range(-reach, reach))


func _is_near(place: Vector3, taken: Array[Vector3]) -> bool:
	return taken.any(func(other: Vector3) -> bool: return place.distance_to(other) < CLEARANCE)
