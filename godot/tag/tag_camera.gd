class_name TagCamera
extends Camera3D
## Shows the first arena whole from above and in front, or follows an agent; Tab cycles.

enum Target { ARENA, FIRST_AGENT, SECOND_AGENT }

const FOLLOW_OFFSET: Vector3 = Vector3(0.0, 7.0, 8.0)
const SMOOTHING: float = 6.0
const TILT_DEG: float = 58.0

## The game whose first arena is shown.
@export var game: TagGame

var target: Target = Target.ARENA


func _process(delta: float) -> void:
	if not game or game.arenas.is_empty():
		return
	var focus: Vector3 = game.arenas[0].global_position
	var place: Vector3 = focus + _overview()
	if target != Target.ARENA:
		focus = game.arenas[0].bodies[target - 1].global_position
		place = focus + FOLLOW_OFFSET
	global_position = global_position.lerp(place, 1.0 - exp(-SMOOTHING * delta))
	look_at(focus)


func _unhandled_input(event: InputEvent) -> void:
	if event.is_action_pressed("next_camera"):
		cycle()


## Go on to the next target.
func cycle() -> void:
	target = ((target + 1) % Target.size()) as Target


func _get_configuration_warnings() -> PackedStringArray:
	return [] if game else ["Set the game whose arena is to be shown."]


func _overview() -> Vector3:
	var extent: float = maxf(game.rules.wall_x, game.rules.wall_z)
	var away: float = extent / tan(deg_to_rad(0.5 * fov)) * 1.25
	return Vector3(0.0, sin(deg_to_rad(TILT_DEG)), cos(deg_to_rad(TILT_DEG))) * away
