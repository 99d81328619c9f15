class_name LocomotionArena
extends Node3D
## One rig with its floor, obstacles and goals, and the rules of its episodes.

const BOX: PackedScene = preload("obstacle.tscn")
const GOAL_RADIUS_M: float = 1.0
const FALLEN_BELOW_M: float = -10.0
const USUAL_STEPS: float = 500.0
const COURSE_SEC: float = 60.0

## "goals", "obstacles", "maze" or "course"; the first three may change with every episode.
var task: String = "goals"
var layout: LocomotionLayout
## How long an episode may last.
var limit_ticks: int = 0
## Which goal is next.
var goal_index: int = 0

var _nearest_m: float = 0.0
var _way_m: float = 0.0
var _boxes: Array[Node] = []

@onready var rig: VRRig = $Rig
@onready var controller: RigController = $Rig/AIController3D
@onready var _marker: Node3D = $Goal
@onready var _obstacles: Node3D = $Obstacles


func _ready() -> void:
	set_process(not FeatureScene.is_headless())
	controller.arena = self
	controller.init(rig)
	rig.hit.connect(_on_hit)
	rig.comfort.vignette_activated.connect(controller.note_event.bind(&"vignette"))
	_begin()


func _physics_process(delta: float) -> void:
	if controller.needs_reset:
		_begin()
		return
	if controller.heuristic == "human":
		controller.steer_by_hand()
	rig.tick(delta)
	rig.comfort.tick(rig.acceleration, rig.turn_rate, delta)
	_judge()


func _process(_delta: float) -> void:
	rig.pose()


## Where the goal is, seen from the rig's place, in the arena's axes.
func to_goal() -> Vector3:
	return layout.goals[goal_index] - rig.position


func _begin() -> void:
	if task != "course":
		task = RLParameters.text("task", task, controller)
	layout = LocomotionLayout.new(task, controller.episode_seed, controller)
	limit_ticks = int(COURSE_SEC * FeatureScene.TICKS_PER_SECOND)
	if task != "course":
		var steps: float = RLParameters.number("max_steps", USUAL_STEPS, controller)
		limit_ticks = maxi(int(steps), 1) * FeatureScene.TICKS_PER_STEP
	goal_index = 0
	_place_boxes()
	rig.place(layout.start, layout.yaw)
	_aim()
	controller.start_episode()


func _aim() -> void:
	_marker.position = layout.goals[goal_index]
	_way_m = layout.way_m(rig.position, goal_index)
	_nearest_m = _way_m


func _judge() -> void:
	var way: float = layout.way_m(rig.position, goal_index)
	controller.count_tick()
	controller.after_tick(_way_m - way, maxf(_nearest_m - way, 0.0))
	_way_m = way
	_nearest_m = minf(_nearest_m, way)
	if rig.position.y < FALLEN_BELOW_M:
		controller.note_event(&"fell")
		_end({"fell": true})
	elif way < GOAL_RADIUS_M:
		_reach()
	elif controller.ticks >= limit_ticks:
		controller.note_event(&"timeout")
		_end({"timeout": true})


func _reach() -> void:
	if goal_index + 1 < layout.goals.size():
		controller.note_event(&"waypoint")
		goal_index += 1
		_aim()
		return
	controller.note_event(&"goal")
	_end({"goal_reached": true})


func _end(outcome: Dictionary) -> void:
	controller.finish(outcome)
	if get_parent() is FeatureScene:
		get_parent().record_episode(controller.summary)
	if outcome.get("timeout", false):
		controller.truncated = true
	else:
		controller.done = true
	_begin()


func _on_hit(_normal: Vector3) -> void:
	controller.has_collided = true
	controller.collisions += 1
	controller.note_event(&"collision")


func _place_boxes() -> void:
	while _boxes.size() < layout.box_places.size():
		var box: Node = BOX.instantiate()
		_boxes.append(box)
		_obstacles.add_child(box)
	for i: int in _boxes.size():
		var is_used: bool = i < layout.box_places.size()
		_boxes[i].set_used(is_used)
		if is_used:
			_boxes[i].set_box(layout.box_places[i], layout.box_sizes[i])
