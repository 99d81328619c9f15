class_name TagAgentLook
extends Node3D
## How an agent looks: a soft cube with eyes that stretches, leans, blinks and looks about.
##
## Moves with the game's time alone. The feet are its origin.

const ROUNDING: float = 0.2
const EYE_RADIUS: float = 0.215
const PUPIL_RADIUS: float = 0.13
const EYE_APART: float = 0.235
## So that someone who looks from above sees what the eyes do.
const GAZE_LIFT: float = 0.45
const WIDEST_GAZE: float = 0.9
const BLINK_EVERY_TICKS: int = 167
const BLINK_TICKS: int = 9
## From one agent to the other.
const BLINK_APART_TICKS: int = 71
const LEAN_PER_MPS2: float = 0.014
const MOST_LEAN: float = 0.26
const STRETCH: float = 0.16
const SQUASH: float = 0.34
const SLUMP: float = 0.22
const HARDEST_IMPACT: float = 1.3
const FLASH_SEC: float = 0.45
const HOPS_PER_SEC: float = 2.2
const HOP_M: float = 0.35
const LONG_AGO: float = 100.0

## All of it, standing on its origin.
var cube: Node3D = Node3D.new()
var skin: StandardMaterial3D = TagLook.matt(Color.WHITE)
## Left and right.
var eyes: Array[Node3D] = []
var pupils: Array[MeshInstance3D] = []

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
var _since_impact: float = LONG_AGO
var _since_flash: float = LONG_AGO
var _since_end: float = 0.0


func _init(rules: TagRules, index: int) -> void:
	_rules = rules
	_index = index
	name = "Look"
	position.y = -rules.half
	skin.roughness = 0.55
	skin.metallic_specular = 0.4
	var middle: Vector3 = Vector3.UP * 0.5 * rules.size
	var body: ArrayMesh = TagBlock.mesh(Vector3.ONE * 0.96 * rules.size, ROUNDING * rules.size)
	cube.add_child(TagLook.piece(body, skin, middle))
	add_child(cube)
	for side: float in [1.0, -1.0]:
		_add_eye(side)


## Forget what moved: another episode, or another moment of this one.
func start_over(game: TagMatch) -> void:
	var agent: TagAgent = game.agents[_index]
	_role = TagLook.role_of(game, _index)
	_velocity = _velocity_of(agent)
	_was_on_floor = agent.on_floor
	_fastest_fall = 0.0
	_lean = Vector3.ZERO
	_height = 1.0
	_gaze = Vector3.BACK
	_since_impact = LONG_AGO
	_since_flash = LONG_AGO
	_since_end = 0.0


## Show the agent as it is now, `seconds` of the game's time later.
func advance(game: TagMatch, seconds: float) -> void:
	var agent: TagAgent = game.agents[_index]
	_since_impact += seconds
	_since_flash += seconds
	_since_end = _since_end + seconds if game.end != TagMatch.End.GOING_ON else 0.0
	if TagLook.role_of(game, _index) != _role:
		_role = TagLook.role_of(game, _index)
		_since_flash = 0.0
	_colour(agent)
	_move(agent, game, seconds)
	_look(game, seconds)
	_blink(game)


func _add_eye(side: float) -> void:
	var eye: Node3D = Node3D.new()
	eye.position = Vector3(side * EYE_APART, 0.84, 0.3) * _rules.size
	var white: StandardMaterial3D = TagLook.matt(TagLook.PALE)
	eye.add_child(TagLook.piece(_ball(EYE_RADIUS), white))
	pupils.append(TagLook.piece(_ball(PUPIL_RADIUS), TagLook.matt(Color("221d1a"))))
	eye.add_child(pupils.back())
	cube.add_child(eye)
	eyes.append(eye)


func _ball(radius: float) -> SphereMesh:
	var ball: SphereMesh = SphereMesh.new()
	ball.radius = radius * _rules.size
	ball.height = 2.0 * ball.radius
	ball.radial_segments = 20
	ball.rings = 10
	return ball


func _colour(agent: TagAgent) -> void:
	var paleness: float = 0.8 * exp(-_since_flash / FLASH_SEC * 3.0)
	if agent.immune_ticks > 0:
		paleness = maxf(paleness, 0.3 + 0.25 * cos(0.4 * agent.immune_ticks))
	skin.albedo_color = TagLook.ROLES[_role].lerp(TagLook.PALE, paleness)


func _move(agent: TagAgent, game: TagMatch, seconds: float) -> void:
	var velocity: Vector3 = _velocity_of(agent)
	_notice_landing(agent)
	if seconds > 0.0:
		var change: Vector3 = (velocity - _velocity) / seconds
		var lean: Vector3 = LEAN_PER_MPS2 * Vector3(change.x, 0.0, change.z)
		_lean = _lean.lerp(lean.limit_length(MOST_LEAN), _share(9.0, seconds))
	_velocity = velocity
	_height = lerpf(_height, _wanted_height(game), _share(28.0, seconds))
	var wide: float = 1.0 / sqrt(_height)
	var turn: Basis = Basis(Vector3.UP, atan2(agent.forward_x, agent.forward_z))
	var tilt: Basis = Basis.IDENTITY
	if _lean.length() > 0.001:
		tilt = Basis(Vector3.UP.cross(_lean).normalized(), _lean.length())
	cube.basis = tilt * turn * Basis.from_scale(Vector3(wide, _height, wide))
	cube.position.y = 0.0
	if game.winner == _index:
		cube.position.y = HOP_M * _rules.size * absf(sin(PI * HOPS_PER_SEC * _since_end))


func _notice_landing(agent: TagAgent) -> void:
	_fastest_fall = maxf(_fastest_fall, -agent.velocity_y)
	if agent.on_floor and not _was_on_floor:
		_impact = minf(_fastest_fall / _rules.jump_speed, HARDEST_IMPACT)
		_since_impact = 0.0
	if agent.on_floor:
		_fastest_fall = 0.0
	_was_on_floor = agent.on_floor


## Stretched in the air, squashed and swinging after a landing, slumped after a defeat.
func _wanted_height(game: TagMatch) -> float:
	var height: float = 1.0 + STRETCH * minf(absf(_velocity.y) / _rules.jump_speed, 1.0)
	height -= SQUASH * _impact * exp(-9.0 * _since_impact) * cos(20.0 * _since_impact)
	if game.winner == 1 - _index:
		height -= SLUMP
	return height


## Towards the opponent where the agent sees it, else ahead; in the cube's own directions.
func _look(game: TagMatch, seconds: float) -> void:
	var wanted: Vector3 = Vector3.BACK
	if game.observations[_index][TagObservation.opponent_visible] > 0.5:
		var agent: TagAgent = game.agents[_index]
		var other: TagAgent = game.agents[1 - _index]
		var away: Vector3 = Vector3(other.x - agent.x, other.y - agent.y, other.z - agent.z)
		var turn: float = atan2(agent.forward_x, agent.forward_z)
		wanted = away.rotated(Vector3.UP, -turn).normalized()
	var angle: float = clampf(atan2(wanted.x, wanted.z), -WIDEST_GAZE, WIDEST_GAZE)
	wanted = Vector3(sin(angle), wanted.y + GAZE_LIFT, cos(angle)).normalized()
	_gaze = _gaze.lerp(wanted, _share(14.0, seconds)).normalized()
	for pupil: MeshInstance3D in pupils:
		pupil.position = (EYE_RADIUS - 0.5 * PUPIL_RADIUS) * _rules.size * _gaze


## Shut for a moment now and then; half shut after a defeat.
func _blink(game: TagMatch) -> void:
	var open: float = 1.0
	var phase: int = (game.tick + BLINK_APART_TICKS * _index) % BLINK_EVERY_TICKS
	if phase < BLINK_TICKS and game.end == TagMatch.End.GOING_ON:
		open = absf(2.0 * phase / (BLINK_TICKS - 1) - 1.0)
	elif game.winner == 1 - _index:
		open = 0.45
	for eye: Node3D in eyes:
		eye.scale.y = maxf(open, 0.12)


static func _velocity_of(agent: TagAgent) -> Vector3:
	return Vector3(agent.velocity_x, agent.velocity_y, agent.velocity_z)


## How much of the way a smooth motion goes in a time.
static func _share(rate: float, seconds: float) -> float:
	return 1.0 - exp(-rate * seconds)
