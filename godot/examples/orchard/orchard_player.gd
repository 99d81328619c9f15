class_name OrchardPlayer
extends CharacterBody2D
## Runs, eats and gets hurt; a person or the controller says where to.

const SPEED: float = 240.0
const RADIUS: float = 14.0
const FRUIT_RADIUS: float = 12.0
const THORN_RADIUS: float = 16.0
const WANTED_FRUIT: float = 5.0
const TICKS_PER_SEC: float = 60.0

## The parameters of this episode: pixels per second, fruit that makes a success.
var speed: float = SPEED
var wanted_fruit: float = WANTED_FRUIT
## Where to run; of length 0 or 1.
var wish: Vector2 = Vector2.ZERO:
	set(value):
		if wish != value:
			wish = value
			queue_redraw()
## How many fruits it has eaten in this episode.
var eaten: int = 0:
	set(value):
		eaten = value
		_arena.queue_redraw()
## The same of the episode before.
var score: int = 0
## Whether it ate as much as was wanted in the episode before.
var is_success: bool = false

@onready var controller: OrchardController = $Controller
@onready var _arena: OrchardArena = get_parent()
@onready var _approach: ApproachNodeReward2D = $Approach


func _ready() -> void:
	controller.init(self)
	controller.needs_reset = true


func _physics_process(_delta: float) -> void:
	if controller.needs_reset:
		controller.reset()
		_restart()
		return
	if controller.heuristic == "human":
		wish = _wish_of_keys()
	velocity = speed * wish
	move_and_slide()
	controller.reward += _approach.get_reward()
	if position.distance_to(_arena.fruit.position) < RADIUS + FRUIT_RADIUS:
		_eat()
	if _arena.touches_thorn(position, RADIUS + THORN_RADIUS):
		controller.reward -= 1.0
		controller.done = true
		controller.needs_reset = true


func _draw() -> void:
	draw_circle(Vector2.ZERO, RADIUS, Color("3d6fb4"), true, -1.0, true)
	for side: float in [-5.0, 5.0]:
		draw_circle(Vector2(side, -3.0), 4.0, Color.WHITE, true, -1.0, true)
		draw_circle(Vector2(side, -3.0) + 1.5 * wish, 2.0, Color("20303f"), true, -1.0, true)


func _eat() -> void:
	eaten += 1
	controller.reward += 1.0
	_arena.grow_fruit()
	_approach.reset()


func _restart() -> void:
	score = eaten
	is_success = score >= wanted_fruit
	eaten = 0
	velocity = Vector2.ZERO
	_read_parameters()
	var thorns: int = int(RLParameters.number("thorns", 5.0, controller))
	_arena.restart(controller.episode_seed, thorns)
	_approach.reset()


func _read_parameters() -> void:
	speed = RLParameters.number("speed", SPEED, controller)
	wanted_fruit = RLParameters.number("wanted_fruit", WANTED_FRUIT, controller)
	_arena.fruit_distance = RLParameters.number("fruit_distance", 0.0, controller)
	_approach.reward_scale = RLParameters.number("approach_reward", 0.002, controller)
	var seconds: float = RLParameters.number("time_limit", 20.0, controller)
	controller.reset_after = roundi(TICKS_PER_SEC * seconds)


## Only one direction at a time, as the agent.
func _wish_of_keys() -> Vector2:
	var keys: Vector2 = Input.get_vector("ui_left", "ui_right", "ui_up", "ui_down")
	if absf(keys.x) > absf(keys.y):
		return Vector2(signf(keys.x), 0.0)
	return Vector2(0.0, signf(keys.y))
