class_name RigController
extends AIController3D
## What the agents of VR scenes share: they steer a VRRig, are told of its ticks by the arena, and
## end episodes with a summary.

## What the observation's rays and the arena's bodies are on.
const WALLS: int = 1
const NOTHING: Dictionary = {}
const TELEPORT_BY_HAND_M: float = 3.0

## How the episode that ended since the last action ended, or empty.
var summary: Dictionary = {}
## What the HTTP API tells of the last moment of that episode.
var last_named: Dictionary = {}
var arena: LocomotionArena

## The fastest that the task allows.
var top_speed_mps: float = 2.0
var top_turn_deg: float = 90.0
## Of this episode.
var collisions: int = 0
## The sum of the comfort scores of all ticks.
var comfort_sum: float = 0.0
var ticks: int = 0
## Whether a collision began since the last action.
var has_collided: bool = false

@onready var rig: VRRig = get_parent()


func _ready() -> void:
	# The arena keeps the time limit, because it must be told before the controller.
	reset_after = 1 << 30


## Virtual: begin an episode; the rig stands at its start.
func begin() -> void:
	pass


## Virtual: reward a tick; `progress_m` is how much nearer the rig came to its goal, `gained_m` how
## much nearer than ever before.
func after_tick(_progress_m: float, _gained_m: float) -> void:
	pass


## Virtual: reward an event: "collision", "waypoint", "goal", "fell", "timeout", "vignette".
func note_event(_event: StringName) -> void:
	pass


## Virtual: the action that an object with a `type` means in the HTTP API, or a String that says
## what is wrong with it.
func action_of(_said: Dictionary) -> Variant:
	return "this agent takes the keys of its action space"


## Virtual: the observation as the HTTP API tells it.
func get_named_obs() -> Dictionary:
	return get_obs()


## Virtual: whether the episode that ended so was a success.
func is_success(outcome: Dictionary) -> bool:
	return outcome.get("goal_reached", false)


## Steer by keyboard and mouse.
func steer_by_hand() -> void:
	start_step()
	rig.stick = HandInput.stick()
	rig.turn = HandInput.turn()
	var snap: float = HandInput.take_snap()
	if snap:
		rig.snap_turn(snap)
	if HandInput.take_teleport():
		rig.teleport(TELEPORT_BY_HAND_M)


## What happened in the last step; after the end of an episode, its summary.
func get_info() -> Dictionary:
	return summary if summary else describe_step()


static func is_within(value: Variant, low: float, high: float) -> bool:
	return typeof(value) in [TYPE_INT, TYPE_FLOAT] and value >= low and value <= high


func describe_step() -> Dictionary:
	return {
		"collision": has_collided,
		"goal_reached": false,
		"timeout": false,
		"fell": false,
		"comfort_score": comfort_now(),
		"success": false,
	}


func comfort_now() -> float:
	var speed: float = Vector2(rig.velocity.x, rig.velocity.z).length()
	var turn_share: float = rig.turn_rate / deg_to_rad(top_turn_deg)
	return VRComfortSystem.score(turn_share, speed / top_speed_mps, rig.camera.rotation.z)


## A tick of the arena is over.
func count_tick() -> void:
	ticks += 1
	comfort_sum += comfort_now()


## The arena starts an episode.
func start_episode() -> void:
	collisions = 0
	comfort_sum = 0.0
	ticks = 0
	reset()
	begin()


## An action arrives: what was told of the step before is over.
func start_step() -> void:
	has_collided = false
	summary = NOTHING


## The episode is over.
func finish(outcome: Dictionary) -> void:
	summary = describe_step()
	summary.merge(outcome, true)
	summary["success"] = is_success(outcome)
	summary["comfort_mean"] = comfort_sum / maxi(ticks, 1)
	summary["collisions"] = collisions
	summary["vignettes"] = rig.comfort.activations
	summary["walked_m"] = rig.walked_m
	summary["time_sec"] = ticks / float(FeatureScene.TICKS_PER_SECOND)
	last_named = get_named_obs()
