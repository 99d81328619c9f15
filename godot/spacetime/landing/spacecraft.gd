class_name Spacecraft
extends RigidBody3D
## A lander: a thrust vector, RCS for pitch and roll, fuel, and a stability assist that rights it.

const THRUST_N: float = 10000.0
const RCS_NM: float = 500.0
const FUEL_KG: float = 900.0
const BURN_KG_PER_SEC: float = 10.0
## Full RCS holds this tilt against the assist.
const ASSIST_TILT_RAD: float = 0.35
const ASSIST_DAMPING_NMS: float = 2500.0
## From the middle of the body to the feet.
const FEET_M: float = 1.2

## What the pilot asks for, in the craft's axes; of length 1 at most.
var thrust: Vector3 = Vector3.ZERO
## Pitch and roll.
var rcs: Vector2 = Vector2.ZERO
var fuel_kg: float = FUEL_KG
## Before the contacts of the last physics step, if there were any.
var velocity_before: Vector3 = Vector3.ZERO

@onready var _flame: Node3D = $Flame


func _ready() -> void:
	set_process(DisplayServer.get_name() != "headless")


func _process(_delta: float) -> void:
	var share: float = thrust.length() if fuel_kg > 0.0 else 0.0
	_flame.visible = share > 0.02
	if _flame.visible:
		_flame.basis = Basis(Quaternion(Vector3.UP, thrust.normalized()))
		_flame.scale = Vector3(1.0, share, 1.0)


## Be at a place at once.
func place(at: Vector3, velocity: Vector3) -> void:
	transform = Transform3D(Basis.IDENTITY, at)
	linear_velocity = velocity
	angular_velocity = Vector3.ZERO
	velocity_before = velocity
	thrust = Vector3.ZERO
	rcs = Vector2.ZERO
	fuel_kg = FUEL_KG


## Apply thrust and RCS for a tick; returns the fuel burned, in kg.
func burn(delta: float) -> float:
	velocity_before = linear_velocity
	var up: Vector3 = global_basis.y
	var righting: Vector3 = up.cross(Vector3.UP) * RCS_NM / sin(ASSIST_TILT_RAD)
	var turning: Vector3 = Vector3(rcs.x, 0.0, rcs.y) * RCS_NM
	apply_torque(global_basis * turning + righting - ASSIST_DAMPING_NMS * angular_velocity)
	var burned: float = minf(BURN_KG_PER_SEC * thrust.length() * delta, fuel_kg)
	if burned > 0.0:
		apply_central_force(global_basis * thrust * THRUST_N)
		fuel_kg -= burned
	return burned


## How far it leans.
func tilt_rad() -> float:
	return global_basis.y.angle_to(Vector3.UP)
