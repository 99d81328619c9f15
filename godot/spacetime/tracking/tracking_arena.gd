class_name TrackingArena
extends FeatureIsland
## A rig that stands still and reaches for targets with both hands, to test tracking: what the XR
## nodes say is compared with what the mock was told, and jerks are counted.

const TOUCH_M: float = 0.1
const TOUCHES_TO_SUCCEED: int = 10
const HAND_SPEED_MPS: float = 1.5
## Faster changes of a hand's speed are jerks.
const JERK_MPS2: float = 60.0
const REACH: AABB = AABB(Vector3(-0.35, -0.3, -0.4), Vector3(0.7, 0.8, 0.5))

## How fast each hand is told to move, from -1 to 1 on each axis.
var wishes: Array[Vector3] = [Vector3.ZERO, Vector3.ZERO]
## Where each hand should go, beyond its place at rest.
var targets: Array[Vector3] = [Vector3.ZERO, Vector3.ZERO]
var hand_velocities: Array[Vector3] = [Vector3.ZERO, Vector3.ZERO]
var touches: int = 0
var jerks: int = 0
## The farthest that a tracked hand was from where it was told to be.
var worst_error_m: float = 0.0

@onready var rig: VRRig = $Rig
@onready var controller: VRTrackingAIController = $Rig/AIController3D
@onready var _markers: Array[Node3D] = [$LeftTarget, $RightTarget]


func begin() -> void:
	rig.place(Vector3.ZERO, 0.0)
	touches = 0
	jerks = 0
	worst_error_m = 0.0
	for hand: int in 2:
		rig.reach[hand] = Vector3.ZERO
		wishes[hand] = Vector3.ZERO
		hand_velocities[hand] = Vector3.ZERO
		_draw_target(hand)
	rig.pose()


func tick(delta: float) -> void:
	for hand: int in 2:
		_move_hand(hand, delta)
	rig.pose()
	_judge()


func steer_by_hand() -> void:
	var hand: int = 0 if Input.is_key_pressed(KEY_SHIFT) else 1
	var stick: Vector2 = HandInput.stick()
	wishes[hand] = Vector3(stick.x, stick.y, HandInput.turn())
	wishes[1 - hand] = Vector3.ZERO


func describe(_agent: FeatureAgent) -> Dictionary:
	return {
		"touches": touches,
		"jerks": jerks,
		"tracking_error_m": worst_error_m,
		"comfort_score": 1.0 - minf(jerks / float(maxi(ticks, 1)), 1.0),
		"success": touches >= TOUCHES_TO_SUCCEED and worst_error_m < TOUCH_M,
	}


## From a hand to its target.
func way(hand: int) -> Vector3:
	return targets[hand] - rig.reach[hand]


func _draw_target(hand: int) -> void:
	var share: Vector3 = Vector3(random.randf(), random.randf(), random.randf())
	targets[hand] = REACH.position + REACH.size * share
	_markers[hand].position = _rest(hand) + targets[hand]


func _rest(hand: int) -> Vector3:
	return Vector3(-VRRig.HAND.x if hand == 0 else VRRig.HAND.x, VRRig.HAND.y, VRRig.HAND.z)


func _move_hand(hand: int, delta: float) -> void:
	var before: Vector3 = rig.reach[hand]
	var old_velocity: Vector3 = hand_velocities[hand]
	var after: Vector3 = before + wishes[hand] * HAND_SPEED_MPS * delta
	rig.reach[hand] = after.clamp(REACH.position, REACH.end)
	hand_velocities[hand] = (rig.reach[hand] - before) / delta
	if hand_velocities[hand].distance_to(old_velocity) > JERK_MPS2 * delta:
		jerks += 1
	var gain: float = (targets[hand] - before).length() - way(hand).length()
	controller.reward += gain


func _judge() -> void:
	var nodes: Array[XRController3D] = [rig.left_hand, rig.right_hand]
	for hand: int in 2:
		var error: float = nodes[hand].position.distance_to(_rest(hand) + rig.reach[hand])
		worst_error_m = maxf(worst_error_m, error)
		if way(hand).length() < TOUCH_M:
			touches += 1
			controller.reward += 1.0
			_draw_target(hand)
