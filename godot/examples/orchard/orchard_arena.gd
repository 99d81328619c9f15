class_name OrchardArena
extends Node2D
## The ground of one agent: walls around it, a fruit and some thorns on it.

## Half the side of the ground, inside the walls.
const HALF: float = 240.0
## Nothing grows nearer to a wall than this.
const MARGIN: float = 36.0
## Nothing grows nearer to a thorn than this.
const CLEARANCE: float = 84.0

## A fruit may grow too far away after so many tries.
const MOST_TRIES: int = 200
## Where thorns are that do not grow.
const AWAY: Vector2 = Vector2(0.0, 9999.0)

const GROUND: Color = Color("dfe8c8")
const EDGE: Color = Color("8a9a6b")
const FRUIT: Color = Color("d9473d")

## The next fruit grows at most this far from the player if there is room; 0: anywhere.
var fruit_distance: float = 0.0
## What this episode's chances are drawn from.
var _random: RandomNumberGenerator = RandomNumberGenerator.new()

@onready var fruit: Area2D = $Fruit
@onready var player: OrchardPlayer = $Player
@onready var _thorns: Array[Node] = $Thorns.get_children()


func _draw() -> void:
	var ground: Rect2 = Rect2(-HALF, -HALF, 2.0 * HALF, 2.0 * HALF)
	draw_rect(ground.grow(12.0), EDGE)
	draw_rect(ground, GROUND)
	for index: int in player.eaten:
		draw_circle(Vector2(16.0 * index - HALF, -HALF - 24.0), 6.0, FRUIT, true, -1.0, true)


## Begin an episode: everything grows somewhere else, drawn from the seed.
func restart(episode_seed: int, thorns: int = 5) -> void:
	_random.seed = episode_seed
	player.position = _draw_place()
	for thorn: Node2D in _thorns.slice(thorns):
		thorn.position = AWAY
	for index: int in mini(thorns, _thorns.size()):
		_thorns[index].position = _draw_place()
		while _is_near_thorn(_thorns[index].position, index) or _is_near_player(_thorns[index]):
			_thorns[index].position = _draw_place()
	grow_fruit()


## The next fruit.
func grow_fruit() -> void:
	fruit.position = _draw_place()
	var tries: int = 1
	while (
		_is_near_thorn(fruit.position, _thorns.size())
		or _is_near_player(fruit)
		or (tries < MOST_TRIES and _is_too_far(fruit))
	):
		fruit.position = _draw_place()
		tries += 1


func touches_thorn(at: Vector2, distance: float) -> bool:
	for thorn: Node2D in _thorns:
		if at.distance_to(thorn.position) < distance:
			return true
	return false


func _draw_place() -> Vector2:
	var reach: float = HALF - MARGIN
	return Vector2(_random.randf_range(-reach, reach), _random.randf_range(-reach, reach))


func _is_near_player(thing: Node2D) -> bool:
	return thing.position.distance_to(player.position) < CLEARANCE


func _is_too_far(thing: Node2D) -> bool:
	return fruit_distance and thing.position.distance_to(player.position) > fruit_distance


## Near one of the first `count` thorns.
func _is_near_thorn(at: Vector2, count: int) -> bool:
	for index: int in count:
		if at.distance_to(_thorns[index].position) < CLEARANCE:
			return true
	return false
