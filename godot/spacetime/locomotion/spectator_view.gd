class_name SpectatorView
extends CanvasLayer
## What a person sees: the arena from above or behind, or through the rig's eyes (C changes that),
## and an overlay of the goal and of comfort.

enum View { BEHIND, EYES, ABOVE }

const BEHIND: Vector3 = Vector3(0.0, 2.6, 4.2)
const ABOVE: Vector3 = Vector3(0.0, 34.0, 24.0)
const LOOK_AT: Vector3 = Vector3(0.0, 1.3, 0.0)
const FOLLOW_PER_SEC: float = 6.0
const TEXT: String = """%s   %s
goal         %5.1f m
time         %5.1f / %.0f s
collisions   %5d
vignettes    %5d
comfort      %5.2f

episodes     %5d
successes    %5d"""

var view: SpectatorView.View = View.BEHIND

var _arena: LocomotionArena
var _scene: FeatureScene

@onready var _camera: Camera3D = $Camera3D
@onready var _label: Label = $Panel/Rows/Numbers
@onready var _vignette: ProgressBar = $Panel/Rows/Vignette
@onready var _arrow: Polygon2D = $Compass/Arrow
@onready var _help: Label = $Help


func _ready() -> void:
	set_process(false)


func _process(delta: float) -> void:
	if _arena.controller.heuristic == "human" and view == View.BEHIND:
		_set_view(View.EYES)
	_help.visible = _arena.controller.heuristic == "human"
	_move_camera(delta)
	_show_numbers()


func _unhandled_key_input(event: InputEvent) -> void:
	if event.is_pressed() and not event.is_echo() and event.keycode == KEY_C:
		_set_view((view + 1) % View.size() as SpectatorView.View)


func show_arena(arena: LocomotionArena, scene: FeatureScene) -> void:
	_arena = arena
	_scene = scene
	_set_view(view)
	_move_camera(1.0)
	set_process(true)


func _set_view(to: SpectatorView.View) -> void:
	view = to
	if view == View.EYES:
		_arena.rig.camera.make_current()
	else:
		_camera.make_current()


func _move_camera(delta: float) -> void:
	if view == View.ABOVE:
		var is_small: bool = _arena.task in ["maze", "course"]
		_camera.position = _arena.position + ABOVE * (0.55 if is_small else 1.0)
		_camera.look_at(_arena.position)
	elif view == View.BEHIND:
		var rig: VRRig = _arena.rig
		var wish: Vector3 = rig.global_position + BEHIND.rotated(Vector3.UP, rig.rotation.y)
		var share: float = clampf(FOLLOW_PER_SEC * delta, 0.0, 1.0)
		if _camera.position.distance_to(wish) > 2.0 * BEHIND.length():
			share = 1.0
		_camera.position = _camera.position.lerp(wish, share)
		_camera.look_at(rig.global_position + LOOK_AT)


func _show_numbers() -> void:
	var controller: RigController = _arena.controller
	var rig: VRRig = _arena.rig
	var tick_sec: float = 1.0 / FeatureScene.TICKS_PER_SECOND
	var goal: Vector3 = _arena.to_goal()
	_label.text = (
		TEXT
		% [
			_arena.task,
			controller.heuristic,
			Vector2(goal.x, goal.z).length(),
			controller.ticks * tick_sec,
			_arena.limit_ticks * tick_sec,
			controller.collisions,
			rig.comfort.activations,
			controller.comfort_now(),
			_scene.episodes,
			_scene.successes,
		]
	)
	_vignette.value = rig.comfort.vignette_intensity
	var ahead: Vector3 = goal.rotated(Vector3.UP, -rig.head_yaw())
	_arrow.rotation = atan2(ahead.x, -ahead.z)
