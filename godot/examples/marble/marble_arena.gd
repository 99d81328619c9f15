class_name MarbleArena
extends Node3D
## The floor of one marble, with pillars and a goal on it.

## Half the side of the floor.
const HALF: float = 6.0
## Nothing stands nearer to the edge than this.
const MARGIN: float = 1.2
## Nothing stands nearer to a pillar than this.
const CLEARANCE: float = 2.0
## The marble starts at least this far from the goal, if no distance is asked for.
const WAY: float = 5.0
## How exactly a distance is kept.
const SPREAD: float = 0.25
const AWAY: Vector3 = Vector3(0.0, -100.0, 0.0)

## What this episode's chances are drawn from.
var _random: RandomNumberGenerator = RandomNumberGenerator.new()

@onready var goal: Node3D = $Goal
@onready var _pillars: Array[Node] = $Pillars.get_children()


## Begin an episode: everything stands somewhere else, drawn from the seed. Returns the start, so
## far from the goal; 0 asks for no distance.
func restart(episode_seed: int, distance: float = 0.0, pillars: int = 4) -> Vector3:
	_random.seed = episode_seed
	goal.position = _draw_place()
	var start: Vector3 = _draw_place()
	while not _is_far(start.distance_to(goal.position), distance):
		if distance:
			goal.position = _draw_place()
		start = _draw_place()
	var taken: Array[Vector3] = [goal.position, start]
	for pillar: Node3D in _pillars.slice(pillars):
		pillar.position = AWAY
	for pillar: Node3D in _pillars.slice(0, pillars):
		var place: Vector3 = _draw_place()
		while _is_near(place, taken):
			place = _draw_place()
		pillar.position = place
		taken.append(place)
	return start


func _draw_place() -> Vector3:
	var reach: float = HALF - MARGIN
	return Vector3(_random.randf_range(-reach, reach), 0.0, _random.randf_range(-reach, reach))


func _is_far(way: float, distance: float) -> bool:
	return absf(way - distance) <= SPREAD if distance else way >= WAY


func _is_near(place: Vector3, taken: Array[Vector3]) -> bool:
	return taken.any(func(other: Vector3) -> bool: return place.distance_to(other) < CLEARANCE)
