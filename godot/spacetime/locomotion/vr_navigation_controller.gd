class_name VRNavigationAIController
extends RigController
## The agent of the tasks `goals`, `obstacles` and `maze`: 48 numbers seen, 3 continuous actions or
## 7 discrete ones.
##
## Rewards are those of seed 002 times `reward_scale`. The bonuses for comfort and smoothness are
## paid per meter that the rig is nearer to the goal than ever before: paid per step, walking slowly
## or standing still would be the best policy.

const RAYS: int = 16
## What the observation consists of, and how many numbers each part has.
const PARTS: Dictionary[String, int] = {
	"camera_position": 3,
	"camera_rotation": 4,
	"camera_velocity": 3,
	"camera_angular_velocity": 3,
	"ray_sensors": RAYS,
	"left_controller_position": 3,
	"left_controller_velocity": 3,
	"right_controller_position": 3,
	"right_controller_velocity": 3,
	"goal_position": 3,
	"goal_distance": 1,
	"goal_direction": 3,
}
const RAY_M: float = 5.0
const RAY_HEIGHT_M: float = 1.0
const MOVES: Array[Vector2] = [Vector2.DOWN, Vector2.UP, Vector2.LEFT, Vector2.RIGHT]
const IDLE: int = 6
## Below this the movement is smooth.
const SMOOTH_MPS2: float = 2.0
const WEIGHTS: Dictionary[String, float] = {
	"reward_scale": 0.1,
	"goal_reached": 100.0,
	"progress": 1.0,
	"smooth_movement": 0.1,
	"comfort_bonus": 2.0,
	"collision_penalty": -10.0,
	"fall_penalty": -50.0,
	"timeout_penalty": -20.0,
}
const EVENTS: Dictionary[StringName, String] = {
	&"goal": "goal_reached",
	&"collision": "collision_penalty",
	&"fell": "fall_penalty",
	&"timeout": "timeout_penalty",
}
const FASTEST_MPS: float = 2.0
const FASTEST_TURN_DEG: float = 90.0
## What actions do unless they say so themselves.
const LIMITS: Dictionary[String, float] = {
	"max_movement_speed": FASTEST_MPS,
	"max_rotation_speed": FASTEST_TURN_DEG,
	"turn_angle": 45.0,
	"move_distance": 1.0,
	"action_smoothing": 0.0,
}

var _limits: Dictionary[String, float] = {}
var _weights: Dictionary[String, float] = {}
var _rays: Array[PhysicsRayQueryParameters3D] = []
var _is_discrete: bool = false


func _ready() -> void:
	super()
	_is_discrete = RLParameters.text("actions", "continuous") == "discrete"
	for _ray: int in RAYS:
		var query: PhysicsRayQueryParameters3D = PhysicsRayQueryParameters3D.new()
		query.collision_mask = WALLS
		_rays.append(query)


func begin() -> void:
	for limit: String in LIMITS:
		_limits[limit] = RLParameters.number(limit, LIMITS[limit], self)
	rig.max_speed_mps = _limits["max_movement_speed"]
	rig.max_turn_deg = _limits["max_rotation_speed"]
	top_speed_mps = maxf(rig.max_speed_mps, 0.01)
	top_turn_deg = maxf(rig.max_turn_deg, 0.01)
	for weight: String in WEIGHTS:
		_weights[weight] = RLParameters.number(weight, WEIGHTS[weight], self)


func after_tick(progress_m: float, gained_m: float) -> void:
	var earned: float = _weights["progress"] * progress_m
	if gained_m > 0.0:
		earned += _weights["comfort_bonus"] * comfort_now() * gained_m
		if rig.acceleration.length() < SMOOTH_MPS2:
			earned += _weights["smooth_movement"] * gained_m
	reward += _weights["reward_scale"] * earned


func note_event(event: StringName) -> void:
	if event in EVENTS:
		reward += _weights["reward_scale"] * _weights[EVENTS[event]]


func get_obs() -> Dictionary:
	return {"obs": _observe()}


func get_named_obs() -> Dictionary:
	var seen: Array = _observe()
	var named: Dictionary = {}
	var at: int = 0
	for part: String in PARTS:
		var size: int = PARTS[part]
		named[part] = seen[at] if size == 1 else seen.slice(at, at + size)
		at += size
	named["collision"] = has_collided
	named["fell"] = rig.position.y < LocomotionArena.FALLEN_BELOW_M
	return named


func get_action_space() -> Dictionary:
	if _is_discrete:
		return {"choice": {"size": IDLE + 1, "action_type": "discrete"}}
	return {"move": {"size": 3, "action_type": "continuous"}}


func set_action(action: Variant) -> void:
	start_step()
	if "choice" in action:
		_choose(
			action["choice"], _limit_of("turn_angle", action), _limit_of("move_distance", action)
		)
		return
	var move: Array = action["move"]
	rig.max_speed_mps = _limit_of("max_movement_speed", action)
	rig.max_turn_deg = _limit_of("max_rotation_speed", action)
	var stick: Vector2 = Vector2(clampf(move[0], -1.0, 1.0), clampf(move[1], -1.0, 1.0))
	var kept: float = _limits["action_smoothing"]
	rig.stick = stick.limit_length().lerp(rig.stick, kept)
	rig.turn = lerpf(clampf(move[2], -1.0, 1.0), rig.turn, kept)


func action_of(said: Dictionary) -> Variant:
	match said.get("type"):
		"continuous":
			return _read_continuous(said)
		"discrete":
			return _read_discrete(said)
	return "type: expected continuous or discrete"


func _limit_of(limit: String, action: Dictionary) -> float:
	return action.get(limit, _limits[limit])


func _choose(choice: int, turn_deg: float, distance_m: float) -> void:
	rig.turn = 0.0
	rig.stick = Vector2.ZERO
	if choice < MOVES.size():
		var tick_sec: float = 1.0 / FeatureScene.TICKS_PER_SECOND
		rig.dash(MOVES[choice], distance_m, FeatureScene.TICKS_PER_STEP, tick_sec)
	elif choice != IDLE:
		rig.snap_turn(deg_to_rad(turn_deg if choice == 4 else -turn_deg))


func _observe() -> Array:
	rig.pose()
	var yaw: float = rig.head_yaw()
	var head: Vector3 = rig.position + rig.camera.position
	var facing: Quaternion = rig.quaternion * rig.camera.quaternion
	var speed: Vector3 = rig.velocity
	var seen: Array = [head.x, head.y, head.z, facing.x, facing.y, facing.z, facing.w]
	seen.append_array([speed.x, speed.y, speed.z, 0.0, rig.turn_rate, 0.0])
	_look(yaw, seen)
	var swing: float = rig.swing_mps()
	var left: Vector3 = rig.left_hand.position
	var right: Vector3 = rig.right_hand.position
	var goal: Vector3 = arena.to_goal().rotated(Vector3.UP, -yaw)
	var distance: float = goal.length()
	var way: Vector3 = goal / distance if distance > 0.0 else Vector3.ZERO
	seen.append_array([left.x, left.y, left.z, 0.0, 0.0, -swing])
	seen.append_array([right.x, right.y, right.z, 0.0, 0.0, swing])
	seen.append_array([goal.x, goal.y, goal.z, distance, way.x, way.y, way.z])
	return seen


## The distance to what stands around, from straight ahead on to the left.
func _look(yaw: float, seen: Array) -> void:
	var from: Vector3 = rig.global_position + Vector3(0.0, RAY_HEIGHT_M, 0.0)
	var space: PhysicsDirectSpaceState3D = rig.get_world_3d().direct_space_state
	for i: int in RAYS:
		var angle: float = yaw + TAU * i / RAYS
		var query: PhysicsRayQueryParameters3D = _rays[i]
		query.from = from
		query.to = from + Vector3(-sin(angle), 0.0, -cos(angle)) * RAY_M
		var hit: Dictionary = space.intersect_ray(query)
		seen.append(from.distance_to(hit["position"]) if hit else RAY_M)


func _read_continuous(said: Dictionary) -> Variant:
	var move: Array = []
	for key: String in ["move_horizontal", "move_vertical", "rotate"]:
		var value: Variant = said.get(key, 0.0)
		if not is_within(value, -1.0, 1.0):
			return "%s: expected a number from -1 to 1" % key
		move.append(float(value))
	var speed: Variant = said.get("max_movement_speed", _limits["max_movement_speed"])
	var turn: Variant = said.get("max_rotation_speed", _limits["max_rotation_speed"])
	if not is_within(speed, 0.0, FASTEST_MPS):
		return "max_movement_speed: expected a number from 0 to %s" % FASTEST_MPS
	if not is_within(turn, 0.0, FASTEST_TURN_DEG):
		return "max_rotation_speed: expected a number from 0 to %s" % FASTEST_TURN_DEG
	return {"move": move, "max_movement_speed": float(speed), "max_rotation_speed": float(turn)}


func _read_discrete(said: Dictionary) -> Variant:
	var index: Variant = said.get("action_index")
	var turn: Variant = said.get("turn_angle", _limits["turn_angle"])
	var distance: Variant = said.get("move_distance", _limits["move_distance"])
	if not is_within(index, 0.0, IDLE) or int(index) != index:
		return "action_index: expected an integer from 0 to %d" % IDLE
	if not is_within(turn, 0.0, 180.0):
		return "turn_angle: expected a number from 0 to 180"
	if not is_within(distance, 0.0, 2.0):
		return "move_distance: expected a number from 0 to 2"
	return {"choice": int(index), "turn_angle": float(turn), "move_distance": float(distance)}
