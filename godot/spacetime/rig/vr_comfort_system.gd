class_name VRComfortSystem
extends Node
## Narrows the view while the rig accelerates or turns in a way that makes people sick.
##
## What counts is smoothed, so that a twitch of the stick is not seen and a hard start or a long
## fast turn is. Snap turns and teleports are the comfortable way to move, and do not count.

signal vignette_activated
signal vignette_deactivated

## The vignette shows from this intensity on.
const VISIBLE_FROM: float = 0.05

## The vignette starts at this acceleration.
@export_range(0.5, 20.0, 0.1, "suffix:m/s²") var acceleration_start: float = 3.0
## The vignette is full at this acceleration.
@export_range(0.5, 20.0, 0.1, "suffix:m/s²") var acceleration_full: float = 8.0
## The vignette starts at this turning speed.
@export_range(1.0, 360.0, 1.0, "suffix:°/s") var turn_start_deg: float = 50.0
## The vignette is full at this turning speed.
@export_range(1.0, 360.0, 1.0, "suffix:°/s") var turn_full_deg: float = 120.0
## Over which time acceleration and turning are averaged.
@export_range(0.01, 2.0, 0.01, "suffix:s") var smoothing_sec: float = 0.2
## How long the vignette takes to close.
@export_range(0.01, 2.0, 0.01, "suffix:s") var fade_sec: float = 0.15

## From 0, the whole view, to 1.
var vignette_intensity: float = 0.0
## How often the vignette came on since `clear`.
var activations: int = 0
var is_active: bool = false
## Averaged, in the world's axes.
var felt_acceleration: Vector3 = Vector3.ZERO

var _turn_rate: float = 0.0

@onready var _vignette: MeshInstance3D = get_node_or_null(^"../XROrigin3D/XRCamera3D/Vignette")


## How comfortable a moment is, from 0 to 1: turning and walking below 70% and 80% of the fastest,
## an upright head (roll in rad).
static func score(turn_share: float, speed_share: float, roll: float) -> float:
	var comfort: float = 1.0
	if absf(turn_share) > 0.7:
		comfort -= 0.3
	if speed_share > 0.8:
		comfort -= 0.2
	if absf(roll) > 0.3:
		comfort -= 0.2
	return comfort


func _ready() -> void:
	set_process(_vignette and not FeatureScene.is_headless())


## Draw the vignette for a person who looks through the rig's eyes.
func _process(_delta: float) -> void:
	var camera: Camera3D = _vignette.get_parent()
	_vignette.visible = camera.current and vignette_intensity > 0.0
	if _vignette.visible:
		var paint: ShaderMaterial = _vignette.material_override
		paint.set_shader_parameter(&"intensity", vignette_intensity)


func clear() -> void:
	vignette_intensity = 0.0
	activations = 0
	is_active = false
	felt_acceleration = Vector3.ZERO
	_turn_rate = 0.0


## Take in a tick of movement.
func tick(acceleration: Vector3, turn_rate: float, delta: float) -> void:
	var share: float = minf(delta / smoothing_sec, 1.0)
	felt_acceleration += (acceleration - felt_acceleration) * share
	_turn_rate += (turn_rate - _turn_rate) * share
	var target: float = maxf(
		_excess(felt_acceleration.length(), acceleration_start, acceleration_full),
		_excess(rad_to_deg(absf(_turn_rate)), turn_start_deg, turn_full_deg)
	)
	if not target and not vignette_intensity:
		return
	vignette_intensity = move_toward(vignette_intensity, target, delta / fade_sec)
	if (vignette_intensity > VISIBLE_FROM) != is_active:
		is_active = not is_active
		if is_active:
			activations += 1
			vignette_activated.emit()
		else:
			vignette_deactivated.emit()


func _excess(value: float, start: float, full: float) -> float:
	return clampf((value - start) / (full - start), 0.0, 1.0)
