class_name TagCamera
extends Camera3D
## Shows the first arena as a whole, or follows an agent; Tab switches.
##
## Direction and lens are the camera's own: from the south, so steep that little is hidden, and from
## afar through a long lens, so that an agent is nearly as large at the far wall as at the near one.

enum Target { ARENA, FIRST_AGENT, SECOND_AGENT }

## Free border of the picture, as a share of its half.
@export_range(0.0, 0.5, 0.01) var margin: float = 0.05
## Height of the picture where an agent is followed.
@export_range(1.0, 100.0, 0.1, "suffix:m") var followed_height: float = 10.0
## How fast the camera moves to another target.
@export_range(0.1, 60.0, 0.1, "suffix:1/s") var smoothing: float = 5.0

## The stage whose first arena is shown.
var stage: TagStage
var target: Target = Target.ARENA

var _focus: Vector3 = Vector3.INF
var _away: float = 0.0


func _process(delta: float) -> void:
	if not stage or stage.arenas.is_empty():
		return
	var arena: TagArena = stage.arenas[0]
	var focus: Vector3 = arena.global_position
	var away: float = 0.5 * followed_height / _slope()
	if target == Target.ARENA:
		var overview: Vector2 = _overview()
		focus += global_basis.y * overview.x
		away = overview.y
	else:
		focus = arena.bodies[target - 1].global_position
	var share: float = 1.0 - exp(-smoothing * delta) if _focus.is_finite() else 1.0
	_focus = _focus.lerp(focus, share) if share < 1.0 else focus
	_away = lerpf(_away, away, share)
	global_position = _focus + global_basis.z * _away
	var depth: float = stage.rules.wall_z + 2.0 * stage.rules.wall_height
	near = maxf(_away - depth, 0.1)
	far = _away + depth


func _unhandled_input(event: InputEvent) -> void:
	if event.is_action_pressed("next_camera"):
		target = ((target + 1) % Target.size()) as Target


## Half the height of the picture at a distance of 1, without the margin.
func _slope() -> float:
	return tan(0.5 * deg_to_rad(fov)) * (1.0 - margin)


## How far the focus moves up in the picture, and the distance from it at which the whole room just
## fits: every corner's height and width in the picture, over its depth, is within the lens.
func _overview() -> Vector2:
	var picture: Vector2 = get_viewport().get_visible_rect().size
	var slope_y: float = _slope()
	var slope_x: float = slope_y * picture.x / picture.y
	var above: float = -INF
	var below: float = -INF
	var beside: float = -INF
	var outer: Vector3 = Vector3(stage.rules.wall_x, 0.0, stage.rules.wall_z)
	outer += Vector3(TagArena.WALL_THICKNESS, 0.0, TagArena.WALL_THICKNESS)
	for corner: int in 8:
		var at: Vector3 = (
			outer * Vector3(1.0 if corner & 1 else -1.0, 0.0, 1.0 if corner & 2 else -1.0)
		)
		at.y = stage.rules.wall_height if corner & 4 else -TagRoomLook.SLAB_M
		var nearer: float = at.dot(global_basis.z)
		var higher: float = at.dot(global_basis.y)
		above = maxf(above, higher / slope_y + nearer)
		below = maxf(below, -higher / slope_y + nearer)
		beside = maxf(beside, absf(at.x) / slope_x + nearer)
	return Vector2(0.5 * (above - below) * slope_y, maxf(0.5 * (above + below), beside))
