class_name TagAgentLook
extends Node3D
## The look of an agent: a soft cube with eyes that stretches, leans, blinks and looks around.
##
## It moves with the match's time alone. The scene is a cube of 1 m standing on its origin; `setup`
## scales it to the size of the rules.

const LONG_AGO_SEC: float = 100.0
## How fast gaze, lean and height approach what is wanted, in 1/s.
const GAZE_RATE: float = 14.0
const LEAN_RATE: float = 9.0
const HEIGHT_RATE: float = 28.0

@export_group("Eyes")
## How much the gaze is raised, so that a viewer above sees where the eyes look.
@export_range(0.0, 1.0, 0.01) var gaze_lift: float = 0.45
## How far the eyes turn to either side.
@export_range(0.0, 90.0, 0.1, "radians_as_degrees") var max_gaze: float = 0.9
## Distance of a pupil from the centre of its eye.
@export_range(0.0, 1.0, 0.001, "suffix:m") var pupil_distance: float = 0.15
## Time from one blink to the next.
@export_range(1, 600, 1, "suffix:ticks") var blink_interval: int = 167
## Length of a blink.
@export_range(2, 60, 1, "suffix:ticks") var blink_length: int = 9
## How much earlier the second agent blinks than the first.
@export_range(0, 600, 1, "suffix:ticks") var blink_offset: int = 71

@export_group("Motion")
## Lean for every m/s² of acceleration.
@export_range(0.0, 5.0, 0.01, "radians_as_degrees") var lean_per_mps2: float = 0.014
## The largest lean.
@export_range(0.0, 45.0, 0.1, "radians_as_degrees") var max_lean: float = 0.26
## How much taller it is at the speed of a jump, as a share of its height.
@export_range(0.0, 1.0, 0.01) var stretch: float = 0.16
## How much flatter it is after a fall at the speed of a jump.
@export_range(0.0, 1.0, 0.01) var squash: float = 0.34
## The hardest landing, in speeds of a jump.
@export_range(0.0, 3.0, 0.01) var max_impact: float = 1.3

@export_group("End of the match")
## How high the winner hops.
@export_range(0.0, 2.0, 0.01, "suffix:m") var hop_height: float = 0.35
## How often the winner hops.
@export_range(0.0, 10.0, 0.1, "suffix:1/s") var hop_rate: float = 2.2
## How much flatter the loser is.
@export_range(0.0, 1.0, 0.01) var slump: float = 0.22

@export_group("Colour")
## How long the flash of a change of role lasts.
@export_range(0.01, 5.0, 0.01, "suffix:s") var flash_length: float = 0.45

var _rules: TagRules
var _index: int
var _role: String = ""
var _velocity: Vector3 = Vector3.ZERO
var _lean: Vector3 = Vector3.ZERO
var _height: float = 1.0
var _gaze: Vector3 = Vector3.BACK
var _was_on_floor: bool = true
var _fastest_fall: float = 0.0
var _impact: float = 0.0
var _since_impact: float = LONG_AGO_SEC
var _since_flash: float = LONG_AGO_SEC
var _since_end: float = 0.0

@onready var cube: Node3D = $Cube
@onready var skin: StandardMaterial3D = $Cube/Body.material_override
## Left and right.
@onready var eyes: Array[Node3D] = [$Cube/LeftEye, $Cube/RightEye]
@onready var pupils: Array[Node3D] = [$Cube/LeftEye/Pupil, $Cube/RightEye/Pupil]


## Show agent `index` of matches with these rules.
func setup(rules: TagRules, index: int) -> void:
	_rules = rules
	_index = index
	scale = Vector3.ONE * rules.size
	position.y = -rules.half


## Forget past motion: another episode, or another moment of this one.
func reset(game: TagMatch) -> void:
	var agent: TagAgent = game.agents[_index]
	_role = game.role_of(_index)
	_velocity = _velocity_of(agent)
	_was_on_floor = agent.on_floor
	_fastest_fall = 0.0
	_lean = Vector3.ZERO
	_height = 1.0
	_gaze = Vector3.BACK
	_since_impact = LONG_AGO_SEC
	_since_flash = LONG_AGO_SEC
	_since_end = 0.0


## Show the agent as it is now, `seconds` of the match's time after the last call.
func advance(game: TagMatch, seconds: float) -> void:
	var agent: TagAgent = game.agents[_index]
	_since_impact += seconds
	_since_flash += seconds
	_since_end = _since_end + seconds if game.end != TagMatch.End.GOING_ON else 0.0
	if game.role_of(_index) != _role:
		_role = game.role_of(_index)
		_since_flash = 0.0
	_update_color(agent)
	_move(agent, game, seconds)
	_look(game, seconds)
	_blink(game)


func _update_color(agent: TagAgent) -> void:
	var paleness: float = 0.8 * exp(-_since_flash / flash_length * 3.0)
	if agent.immune_ticks > 0:
		paleness = maxf(paleness, 0.3 + 0.25 * cos(0.4 * agent.immune_ticks))
	skin.albedo_color = TagLook.role_color(_role).lerp(TagLook.pale(), paleness)


func _move(agent: TagAgent, game: TagMatch, seconds: float) -> void:
	var velocity: Vector3 = _velocity_of(agent)
	_detect_landing(agent)
	if seconds > 0.0:
		var change: Vector3 = (velocity - _velocity) / seconds
		var lean: Vector3 = lean_per_mps2 * Vector3(change.x, 0.0, change.z)
		_lean = _lean.lerp(lean.limit_length(max_lean), _share(LEAN_RATE, seconds))
	_velocity = velocity
	_height = lerpf(_height, _wanted_height(game), _share(HEIGHT_RATE, seconds))
	var width: float = 1.0 / sqrt(_height)
	var turn: Basis = Basis(Vector3.UP, atan2(agent.forward_x, agent.forward_z))
	var tilt: Basis = Basis.IDENTITY
	if _lean.length() > 0.001:
		tilt = Basis(Vector3.UP.cross(_lean).normalized(), _lean.length())
	cube.basis = tilt * turn * Basis.from_scale(Vector3(width, _height, width))
	cube.position.y = 0.0
	if game.winner == _index:
		cube.position.y = hop_height * absf(sin(PI * hop_rate * _since_end))


func _detect_landing(agent: TagAgent) -> void:
	_fastest_fall = maxf(_fastest_fall, -agent.velocity_y)
	if agent.on_floor and not _was_on_floor:
		_impact = minf(_fastest_fall / _rules.jump_speed, max_impact)
		_since_impact = 0.0
	if agent.on_floor:
		_fastest_fall = 0.0
	_was_on_floor = agent.on_floor


## Stretched in the air, squashed and swinging after a landing, slumped after a defeat.
func _wanted_height(game: TagMatch) -> float:
	var height: float = 1.0 + stretch * minf(absf(_velocity.y) / _rules.jump_speed, 1.0)
	height -= squash * _impact * exp(-9.0 * _since_impact) * cos(20.0 * _since_impact)
	if game.winner == 1 - _index:
		height -= slump
	return height


## Look at the opponent while the agent sees it, else ahead; in the cube's own directions.
func _look(game: TagMatch, seconds: float) -> void:
	var wanted: Vector3 = Vector3.BACK
	if game.observations[_index][TagObservation.opponent_visible] > 0.5:
		var agent: TagAgent = game.agents[_index]
		var other: TagAgent = game.agents[1 - _index]
		var away: Vector3 = Vector3(other.x - agent.x, other.y - agent.y, other.z - agent.z)
		var turn: float = atan2(agent.forward_x, agent.forward_z)
		wanted = away.rotated(Vector3.UP, -turn).normalized()
	var angle: float = clampf(atan2(wanted.x, wanted.z), -max_gaze, max_gaze)
	wanted = Vector3(sin(angle), wanted.y + gaze_lift, cos(angle)).normalized()
	_gaze = _gaze.lerp(wanted, _share(GAZE_RATE, seconds)).normalized()
	for pupil: Node3D in pupils:
		pupil.position = pupil_distance * _gaze


## Shut for a moment now and then; half shut after a defeat.
func _blink(game: TagMatch) -> void:
	var open: float = 1.0
	var phase: int = (game.tick + blink_offset * _index) % blink_interval
	if phase < blink_length and game.end == TagMatch.End.GOING_ON:
		open = absf(2.0 * phase / (blink_length - 1) - 1.0)
	elif game.winner == 1 - _index:
		open = 0.45
	for eye: Node3D in eyes:
		eye.scale.y = maxf(open, 0.12)


static func _velocity_of(agent: TagAgent) -> Vector3:
	return Vector3(agent.velocity_x, agent.velocity_y, agent.velocity_z)


## The share of the way that a smooth motion covers in this time.
static func _share(rate: float, seconds: float) -> float:
	return 1.0 - exp(-rate * seconds)
