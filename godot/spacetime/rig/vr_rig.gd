class_name VRRig
extends CharacterBody3D
## A person in VR: a body that walks, turns and collides, and carries the XR nodes.
##
## Without a headset a mock drives head and hands; the rest is the same. `tick` moves the rig, so
## that its owner decides when.

signal hit(normal: Vector3)
signal teleported(from: Vector3)
signal snap_turned(angle_rad: float)

const HEAD_HEIGHT_M: float = 1.7
const RADIUS_M: float = 0.3
## Contacts steeper than this are walls.
const WALL_NORMAL_Y: float = 0.7
## A rig that pushes against a wall loses contact now and then: only a longer pause makes the next
## contact another collision.
const FREE_TICKS: int = 18
const STRIDE_M: float = 1.4
const HEAD_BOB_M: float = 0.02
const ARM_SWING_M: float = 0.12
const HAND: Vector3 = Vector3(0.24, 1.05, -0.32)

## The fastest walk.
@export_range(0.1, 10.0, 0.1, "suffix:m/s") var max_speed_mps: float = 2.0
## The fastest smooth turn.
@export_range(1.0, 360.0, 1.0, "suffix:°/s") var max_turn_deg: float = 90.0
## How fast walking follows the stick.
@export_range(0.5, 50.0, 0.5, "suffix:m/s²") var acceleration_mps2: float = 8.0
@export var gravity_mps2: float = 9.8

## The left stick: right, forward; of length 1 at most.
var stick: Vector2 = Vector2.ZERO
## The right stick: -1 turns left, 1 right.
var turn: float = 0.0
## Smooth turning, in rad/s; positive is left, as Godot turns.
var turn_rate: float = 0.0
## Change of velocity in the last tick, without that of contacts.
var acceleration: Vector3 = Vector3.ZERO
## Whether it touched a wall in the last tick.
var is_touching: bool = false
## Where the mock holds the hands, beyond where walking does: left, right.
var reach: Array[Vector3] = [Vector3.ZERO, Vector3.ZERO]
## Meters walked since `place`.
var walked_m: float = 0.0

## Velocity of a dash, and the ticks that it lasts.
var _dash: Vector3 = Vector3.ZERO
var _dash_ticks: int = 0
## The yaw; reading it back from the basis would lose bits.
var _yaw: float = 0.0
## Ticks since it last touched a wall.
var _free_ticks: int = FREE_TICKS

@onready var origin: XROrigin3D = $XROrigin3D
@onready var camera: XRCamera3D = $XROrigin3D/XRCamera3D
@onready var left_hand: XRController3D = $XROrigin3D/LeftController
@onready var right_hand: XRController3D = $XROrigin3D/RightController
@onready var comfort: VRComfortSystem = $VRComfortSystem


func _ready() -> void:
	# Nothing collides with a rig. As a moving body it would make Jolt wake its threads in every
	# tick, which takes longer than all else; its own movement is the same to the bit.
	PhysicsServer3D.body_set_mode(get_rid(), PhysicsServer3D.BODY_MODE_STATIC)
	if FeatureScene.is_headless():
		for mesh: Node in find_children("*", "MeshInstance3D", true, false):
			mesh.queue_free()


## Whether a headset tracks head and hands.
static func has_headset() -> bool:
	var interface: XRInterface = XRServer.primary_interface
	return interface != null and interface.is_initialized()


## Stand still at a place of the parent, looking along `yaw`.
func place(at: Vector3, yaw: float) -> void:
	_yaw = yaw
	transform = Transform3D(Basis(Vector3.UP, yaw), at)
	velocity = Vector3.ZERO
	acceleration = Vector3.ZERO
	stick = Vector2.ZERO
	turn = 0.0
	turn_rate = 0.0
	walked_m = 0.0
	_dash = Vector3.ZERO
	_dash_ticks = 0
	is_touching = false
	_free_ticks = FREE_TICKS
	comfort.clear()
	pose()


## Walk and turn for one tick.
func tick(delta: float) -> void:
	turn_rate = -turn * deg_to_rad(max_turn_deg)
	if turn_rate:
		_set_yaw(_yaw + turn_rate * delta)
	var flat: Vector3 = Vector3(velocity.x, 0.0, velocity.z)
	var wish: Vector3 = Vector3(stick.x, 0.0, -stick.y).rotated(Vector3.UP, _yaw) * max_speed_mps
	var next: Vector3 = flat.move_toward(wish, acceleration_mps2 * delta)
	acceleration = (next - flat) / delta
	if _dash_ticks:
		_dash_ticks -= 1
		next = _dash
		acceleration = Vector3.ZERO
	velocity = Vector3(next.x, velocity.y - gravity_mps2 * delta, next.z)
	is_touching = false
	if move_and_slide():
		_note_contacts()
	walked_m += flat.length() * delta
	_free_ticks = 0 if is_touching else _free_ticks + 1
	if _dash and not _dash_ticks:
		_dash = Vector3.ZERO
		velocity = Vector3(0.0, velocity.y, 0.0)


## Turn at once.
func snap_turn(angle_rad: float) -> void:
	_set_yaw(_yaw + angle_rad)
	snap_turned.emit(angle_rad)


## Move so far within so many ticks, towards (right, forward), and stop.
func dash(toward: Vector2, distance_m: float, ticks: int, tick_sec: float) -> void:
	var way: Vector3 = Vector3(toward.x, 0.0, -toward.y).rotated(Vector3.UP, _yaw)
	_dash = way * distance_m / (ticks * tick_sec)
	_dash_ticks = ticks
	stick = Vector2.ZERO


## Move at once, as far ahead as there is room; returns the distance.
func teleport(distance_m: float) -> float:
	var from: Vector3 = position
	var ahead: Vector3 = Vector3(0.0, 0.0, -distance_m).rotated(Vector3.UP, _yaw)
	var contact: KinematicCollision3D = move_and_collide(ahead, true, 0.05)
	var travel: Vector3 = contact.get_travel() if contact else ahead
	position += Vector3(travel.x, 0.0, travel.z)
	velocity.x = 0.0
	velocity.z = 0.0
	teleported.emit(from)
	return travel.length()


## The yaw of the head, which the goal and the rays are seen from.
func head_yaw() -> float:
	return _yaw + camera.rotation.y if has_headset() else _yaw


## Move head and hands as walking does, unless a headset tracks them.
func pose() -> void:
	if has_headset():
		return
	var phase: float = TAU * walked_m / STRIDE_M
	var swing: float = ARM_SWING_M * sin(phase)
	camera.position = Vector3(0.0, HEAD_HEIGHT_M + HEAD_BOB_M * cos(2.0 * phase), 0.0)
	left_hand.position = Vector3(-HAND.x, HAND.y, HAND.z + swing) + reach[0]
	right_hand.position = Vector3(HAND.x, HAND.y, HAND.z - swing) + reach[1]


## The velocity of the arms' swing, along the right hand's z.
func swing_mps() -> float:
	var speed: float = Vector2(velocity.x, velocity.z).length()
	return -ARM_SWING_M * cos(TAU * walked_m / STRIDE_M) * TAU * speed / STRIDE_M


func _set_yaw(yaw: float) -> void:
	_yaw = wrapf(yaw, -PI, PI)
	basis = Basis(Vector3.UP, _yaw)


func _note_contacts() -> void:
	for i: int in get_slide_collision_count():
		var normal: Vector3 = get_slide_collision(i).get_normal()
		if absf(normal.y) < WALL_NORMAL_Y:
			is_touching = true
			if _free_ticks >= FREE_TICKS:
				_free_ticks = 0
				hit.emit(normal)
