class_name VRLocomotionAIController
extends RigController
## The agent of the task `course`: `obs` has 12 numbers, `comfort` 4 more, and 4 continuous actions
## steer it; reach all waypoints within 60 s without a vignette and without a collision.
##
## Sticks walk and snap turn, the trigger teleports. The survival bonus is paid in proportion to how
## much of the fastest possible progress a step makes: paid for every step, standing still would be
## the best policy. Directions are seen in the rig's frame.

const SURVIVAL_BONUS: float = 0.1
const VIGNETTE_REWARD: float = -0.5
## A fall off the floor is as bad as arriving too late.
const WEIGHTS: Dictionary[StringName, float] = {
	&"waypoint": 1.0,
	&"goal": 1.0,
	&"collision": -1.0,
	&"timeout": -5.0,
	&"fell": -5.0,
}
const SPEED_MPS: float = 3.0
## From a standstill to full speed at once takes long enough to bring the vignette on.
const ACCELERATION_MPS2: float = 4.0
const SNAP_DEG: float = 30.0
## While the stick is held, the rig turns again after this many ticks.
const SNAP_TICKS: int = 24
const TELEPORT_M: float = 3.0
const TELEPORT_TICKS: int = 90
## Beyond this, the turning stick turns and the trigger teleports.
const PRESSED_FROM: float = 0.5
## Forward, left, right, as seen from the rig.
const RAYS: Array[Vector3] = [
	Vector3(0.0, 0.0, -2.0), Vector3(-1.5, 0.0, -1.5), Vector3(1.5, 0.0, -1.5)
]
const RAY_HEIGHT: Vector3 = Vector3(0.0, 1.0, 0.0)
const ACTIONS: Array[String] = ["move_x", "move_z", "rotate", "teleport"]

var move_x: float = 0.0
var move_z: float = 0.0
var rotate_stick: float = 0.0
var teleport: float = 0.0

var _vignette_reward: float = VIGNETTE_REWARD
var _pressed_from: float = PRESSED_FROM
var _snap_tick: int = 0
var _teleport_tick: int = 0
var _rays: Array[PhysicsRayQueryParameters3D] = []


func _ready() -> void:
	super()
	for _ray: Vector3 in RAYS:
		_rays.append(PhysicsRayQueryParameters3D.new())
		_rays[-1].collision_mask = WALLS


func begin() -> void:
	top_speed_mps = SPEED_MPS
	rig.max_speed_mps = SPEED_MPS
	rig.acceleration_mps2 = ACCELERATION_MPS2
	_snap_tick = 0
	_teleport_tick = 0
	_vignette_reward = RLParameters.number("vignette_reward", VIGNETTE_REWARD, self)
	_pressed_from = RLParameters.number("pressed_from", PRESSED_FROM, self)


func after_tick(_progress_m: float, gained_m: float) -> void:
	var most_m: float = SPEED_MPS * FeatureScene.TICKS_PER_STEP / FeatureScene.TICKS_PER_SECOND
	reward += SURVIVAL_BONUS * gained_m / most_m


func note_event(event: StringName) -> void:
	reward += _vignette_reward if event == &"vignette" else WEIGHTS.get(event, 0.0)


func is_success(outcome: Dictionary) -> bool:
	return super(outcome) and collisions == 0 and rig.comfort.activations == 0


func get_obs() -> Dictionary:
	var way: Vector3 = arena.to_goal().rotated(Vector3.UP, -rig.rotation.y)
	var distance: float = Vector2(way.x, way.z).length()
	var toward: Vector3 = way / maxf(distance, 0.001)
	var velocity: Vector3 = rig.velocity.rotated(Vector3.UP, -rig.rotation.y) / 5.0
	var seen: Array = [
		toward.x,
		toward.z,
		clampf(distance / 20.0, 0.0, 1.0),
		sin(rig.rotation.y),
		cos(rig.rotation.y),
		clampf(velocity.x, -1.0, 1.0),
		clampf(velocity.z, -1.0, 1.0),
	]
	seen.append_array(_look())
	seen.append(rig.camera.rotation.x / PI)
	seen.append(rig.comfort.vignette_intensity)
	return {"obs": seen, "comfort": _feel()}


func get_action_space() -> Dictionary:
	var space: Dictionary = {}
	for action: String in ACTIONS:
		space[action] = {"size": 1, "action_type": "continuous"}
	return space


func set_action(action: Variant) -> void:
	start_step()
	move_x = clampf(action["move_x"][0], -1.0, 1.0)
	move_z = clampf(action["move_z"][0], -1.0, 1.0)
	rotate_stick = clampf(action["rotate"][0], -1.0, 1.0)
	teleport = clampf(action["teleport"][0], 0.0, 1.0)
	rig.stick = Vector2(move_x, move_z).limit_length()
	if absf(rotate_stick) <= _pressed_from:
		_snap_tick = 0
	elif ticks >= _snap_tick:
		_snap_tick = ticks + SNAP_TICKS
		rig.snap_turn(-signf(rotate_stick) * deg_to_rad(SNAP_DEG))
	if teleport > _pressed_from and ticks >= _teleport_tick:
		_teleport_tick = ticks + TELEPORT_TICKS
		rig.teleport(TELEPORT_M)


func action_of(said: Dictionary) -> Variant:
	if said.get("type") != "continuous":
		return "type: expected continuous"
	var action: Dictionary = {}
	var names: Array[String] = ["move_horizontal", "move_vertical", "rotate", "teleport"]
	for i: int in names.size():
		var value: Variant = said.get(names[i], 0.0)
		if not is_within(value, -1.0, 1.0):
			return "%s: expected a number from -1 to 1" % names[i]
		action[ACTIONS[i]] = [float(value)]
	return action


## What brings on the vignette, and the share that is left of the waits for turn and teleport.
func _feel() -> Array:
	var felt: Vector3 = rig.comfort.felt_acceleration.rotated(Vector3.UP, -rig.rotation.y)
	felt /= rig.comfort.acceleration_start
	return [
		felt.x,
		felt.z,
		maxf(_snap_tick - ticks, 0.0) / SNAP_TICKS,
		maxf(_teleport_tick - ticks, 0.0) / TELEPORT_TICKS,
	]


## How near obstacles are: 0 is out of reach, 1 is here.
func _look() -> Array:
	var from: Vector3 = rig.global_position + RAY_HEIGHT
	var space: PhysicsDirectSpaceState3D = rig.get_world_3d().direct_space_state
	var found: Array = []
	for i: int in RAYS.size():
		_rays[i].from = from
		_rays[i].to = from + RAYS[i].rotated(Vector3.UP, rig.rotation.y)
		var hit: Dictionary = space.intersect_ray(_rays[i])
		var distance: float = from.distance_to(hit["position"]) if hit else RAYS[i].length()
		found.append(1.0 - distance / RAYS[i].length())
	return found
