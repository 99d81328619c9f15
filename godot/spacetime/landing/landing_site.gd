class_name LandingSite
extends FeatureIsland
## A spacecraft above rough ground with a landing pad, and its pilot, who walks to a beacon after
## landing.
##
## Paid in every step, being near the pad and sinking slowly would make hovering the best policy.
## Here distance and velocity are potentials: what is paid on the way down is lost on the way up.

const SOFT_MPS: float = 2.0
const HARD_MPS: float = 5.0
const UPRIGHT_RAD: float = 0.35
const PRECISE_M: float = 2.0
const PAD_RADIUS_M: float = 8.0
## Where the pilot walks to: a beacon at the edge of the pad.
const BEACON: Vector3 = Vector3(6.5, 0.0, 0.0)
const BEACON_M: float = 2.5
const BESIDE_M: float = 3.5
## Farther beside or above the pad the craft is lost.
const LOST_M: float = 800.0
const LOST_ABOVE_M: float = 1600.0
const REWARDS: Dictionary[String, float] = {
	"soft": 50.0, "hard": 10.0, "crash": -50.0, "precise": 20.0, "timeout": -20.0, "walked": 5.0
}
const FUEL_REWARD: float = -0.01
## Potentials: per metre of distance, per m/s of difference to the guidance velocity.
const DISTANCE: float = -0.1
const OFF_GUIDANCE: float = -1.0
## The guidance velocity leads straight to the pad and brakes evenly; so fast it touches down.
const BRAKING_MPS2: float = 2.0
const FASTEST_MPS: float = 40.0
const SINK_MPS: float = 1.0
const PROJECT_GRAVITY: float = 9.8

## Whether the pilot has left the craft.
var is_walking: bool = false
var touchdown: Dictionary = {}

var _potential: float = 0.0
var _must_walk: bool = false

@onready var craft: Spacecraft = $Spacecraft
@onready var pad: StaticBody3D = $LandingPad
@onready var terrain: LandingTerrain = $Terrain
@onready var pilot: VRRig = $Pilot


func _process(_delta: float) -> void:
	if is_walking:
		pilot.pose()


func setup() -> void:
	terrain.build(get_index())


func begin() -> void:
	var reach: float = parameter("pad_reach_m", 100.0)
	var offset: float = parameter("start_offset_m", 200.0)
	var highest: float = parameter("start_max_m", 1000.0)
	var lowest: float = minf(parameter("start_min_m", 500.0), highest)
	craft.gravity_scale = parameter("gravity_mps2", 1.62) / PROJECT_GRAVITY
	pilot.gravity_mps2 = parameter("gravity_mps2", 1.62)
	_must_walk = parameter("walk", 0.0) > 0.5
	_board()
	var at: Vector3 = Vector3(random.randf_range(-reach, reach), 0.0, 0.0)
	at.z = random.randf_range(-reach, reach)
	at.y = terrain.highest_around(at, PAD_RADIUS_M) + 0.5
	pad.position = at
	at += Vector3(random.randf_range(-offset, offset), 0.0, random.randf_range(-offset, offset))
	at.y = pad.position.y + random.randf_range(lowest, highest)
	var drift: float = parameter("start_speed_mps", 10.0)
	var velocity_at_start: Vector3 = Vector3(
		random.randf_range(-drift, drift),
		random.randf_range(-2.0 * drift, 0.0),
		random.randf_range(-drift, drift)
	)
	craft.place(at, velocity_at_start)
	touchdown = {}
	_potential = _potential_now()


func tick(delta: float) -> void:
	if is_walking:
		_walk(delta)
		return
	var speed: float = craft.velocity_before.length()
	if craft.get_contact_count() > 0 and ticks > 1:
		_touch_down(speed)
		return
	agents[0].reward += FUEL_REWARD * craft.burn(delta)
	var potential: float = _potential_now()
	agents[0].reward += potential - _potential
	_potential = potential
	var way: Vector3 = to_pad()
	if Vector2(way.x, way.z).length() > LOST_M or -way.y > LOST_ABOVE_M:
		agents[0].reward += REWARDS["crash"]
		end({"lost": true})


func time_out() -> void:
	agents[0].reward += REWARDS["timeout"]


func steer_by_hand() -> void:
	var stick: Vector2 = HandInput.stick()
	var lift: float = 1.0 if Input.is_physical_key_pressed(KEY_SPACE) else 0.0
	craft.thrust = Vector3(stick.x, lift, -stick.y).limit_length()
	craft.rcs = Vector2(0.0, -HandInput.turn())


func describe(_agent: FeatureAgent) -> Dictionary:
	var told: Dictionary = {
		"soft_landing": false,
		"hard_landing": false,
		"crash": false,
		"lost": false,
		"within_2_m": false,
		"walked": false,
		"touchdown_mps": velocity().length(),
		"pad_distance_m": Vector2(to_pad().x, to_pad().z).length(),
		"altitude_m": -to_pad().y,
		"fuel_left": craft.fuel_kg / Spacecraft.FUEL_KG,
	}
	return told.merged(touchdown, true)


func focus() -> Node3D:
	return body()


## The craft, or the pilot who has left it.
func body() -> Node3D:
	return pilot if is_walking else craft


## From the feet to the middle of the pad; when walking, to the beacon.
func to_pad() -> Vector3:
	if is_walking:
		return pad.position + BEACON - pilot.position
	return pad.position - craft.position + Vector3(0.0, Spacecraft.FEET_M, 0.0)


func pad_up() -> Vector3:
	return pad.global_basis.y


func velocity() -> Vector3:
	return pilot.velocity if is_walking else craft.linear_velocity


## From the own velocity to the one that leads to the pad.
func off_guidance() -> Vector3:
	var way: Vector3 = to_pad()
	var speed: float = minf(sqrt(2.0 * BRAKING_MPS2 * way.length()), FASTEST_MPS)
	return speed * way.normalized() + SINK_MPS * Vector3.DOWN - velocity()


func _touch_down(speed: float) -> void:
	var is_upright: bool = craft.tilt_rad() < UPRIGHT_RAD
	var is_soft: bool = speed < SOFT_MPS and is_upright
	var is_hard: bool = speed < HARD_MPS and is_upright and not is_soft
	touchdown = describe(agents[0])
	touchdown["touchdown_mps"] = speed
	touchdown["soft_landing"] = is_soft
	touchdown["hard_landing"] = is_hard
	touchdown["crash"] = not (is_soft or is_hard)
	var is_precise: bool = touchdown["pad_distance_m"] < PRECISE_M and not touchdown["crash"]
	touchdown["within_2_m"] = is_precise
	touchdown["success"] = is_soft and is_precise
	agents[0].reward += REWARDS["soft" if is_soft else "hard" if is_hard else "crash"]
	agents[0].reward += REWARDS["precise"] if is_precise else 0.0
	if is_soft and (_must_walk or agents[0].heuristic == "human"):
		_leave()
	else:
		end({})


## The pilot leaves the craft, which stays where it is.
func _leave() -> void:
	is_walking = true
	craft.freeze = true
	var way: Vector3 = pad.position + BEACON - craft.position
	way.y = 0.0
	var beside: Vector3 = craft.position + way.normalized() * BESIDE_M
	beside.y = maxf(terrain.height_at(beside), _pad_height(beside)) + 0.1
	pilot.visible = true
	pilot.place(beside, 0.0)
	pilot.process_mode = Node.PROCESS_MODE_INHERIT


func _board() -> void:
	is_walking = false
	craft.freeze = false
	pilot.visible = false
	pilot.position = Vector3(0.0, -100.0, 0.0)
	pilot.process_mode = Node.PROCESS_MODE_DISABLED


func _walk(delta: float) -> void:
	pilot.stick = Vector2(craft.thrust.x, -craft.thrust.z).limit_length()
	pilot.turn = 0.0
	pilot.tick(delta)
	if Vector2(to_pad().x, to_pad().z).length() < BEACON_M:
		agents[0].reward += REWARDS["walked"]
		touchdown["walked"] = true
		end({})


func _pad_height(at: Vector3) -> float:
	var away: Vector2 = Vector2(at.x - pad.position.x, at.z - pad.position.z)
	return pad.position.y if away.length() < PAD_RADIUS_M else -INF


func _potential_now() -> float:
	return DISTANCE * to_pad().length() + OFF_GUIDANCE * off_guidance().length()
