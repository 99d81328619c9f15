class_name MarbleBall
extends RigidBody3D
## Rolls where it is pushed; a person or the controller says where to.

const FORCE: float = 6.0
const RADIUS: float = 0.4
const GOAL_RADIUS: float = 0.8
const TICKS_PER_SEC: float = 60.0
const FALLEN_BELOW: float = -1.0

## The parameters of this episode: newtons, radians, newtons to the right, metres, ticks.
var force: float = FORCE
var turn: float = 0.0
var wind: float = 0.0
var goal_radius: float = GOAL_RADIUS
var hold_ticks: int = 0
## Where to push; of length 1 at most.
var push: Vector2 = Vector2.ZERO
## Whether it has come to the goal in this episode.
var is_there: bool = false
## 1 if it had in the episode before, else 0.
var score: int = 0
## How many ticks it has been in the goal without leaving it.
var _held: int = 0

@onready var controller: MarbleController = $"../Controller"
@onready var _arena: MarbleArena = get_parent()
@onready var _approach: ApproachNodeReward3D = $"../Controller/Approach"


func _ready() -> void:
	controller.init(self)
	controller.needs_reset = true


func _physics_process(_delta: float) -> void:
	if controller.needs_reset:
		controller.reset()
		_restart()
		return
	if controller.heuristic == "human":
		push = Input.get_vector("ui_left", "ui_right", "ui_up", "ui_down")
	var turned: Vector2 = push.rotated(turn)
	apply_central_force(force * Vector3(turned.x, 0.0, turned.y))
	if wind:
		apply_central_force(wind * Vector3.RIGHT)
	controller.follow()
	controller.reward += _approach.get_reward()
	var way: Vector3 = _arena.goal.position - position
	var is_in_goal: bool = Vector2(way.x, way.z).length() < goal_radius
	_held = _held + 1 if is_in_goal else 0
	if _held > hold_ticks:
		_end(true)
	elif position.y < FALLEN_BELOW:
		_end(false)


func _end(is_goal: bool) -> void:
	is_there = is_goal
	controller.reward += 1.0 if is_goal else -1.0
	controller.done = true
	controller.needs_reset = true


func _restart() -> void:
	score = int(is_there)
	is_there = false
	_held = 0
	_read_parameters()
	var distance: float = RLParameters.number("goal_distance", 0.0, controller)
	var pillars: int = int(RLParameters.number("pillars", 4.0, controller))
	var start: Vector3 = _arena.restart(controller.episode_seed, distance, pillars)
	position = start + RADIUS * Vector3.UP
	rotation = Vector3.ZERO
	linear_velocity = Vector3.ZERO
	angular_velocity = Vector3.ZERO
	push = Vector2.ZERO
	controller.follow()
	_approach.reset()


func _read_parameters() -> void:
	force = RLParameters.number("push_force", FORCE, controller)
	turn = deg_to_rad(RLParameters.number("push_turn", 0.0, controller))
	wind = RLParameters.number("wind", 0.0, controller)
	goal_radius = RLParameters.number("goal_radius", GOAL_RADIUS, controller)
	hold_ticks = roundi(TICKS_PER_SEC * RLParameters.number("hold_time", 0.0, controller))
	_arena.goal.scale = Vector3(goal_radius / GOAL_RADIUS, 1.0, goal_radius / GOAL_RADIUS)
	_approach.reward_scale = RLParameters.number("approach_reward", 0.1, controller)
	var seconds: float = RLParameters.number("time_limit", 15.0, controller)
	controller.reset_after = roundi(TICKS_PER_SEC * seconds)
	var friction: float = RLParameters.number("friction", 1.0, controller)
	physics_material_override = null
	if friction < 1.0:
		physics_material_override = PhysicsMaterial.new()
		physics_material_override.friction = friction
