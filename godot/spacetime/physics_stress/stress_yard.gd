class_name StressYard
extends FeatureIsland
## A tray of boxes that are spawned, thrown and shaken until physics is slow or unstable.
##
## Task `stress`, the default, pays for slow ticks and instabilities; `budget` pays for as many
## awake boxes as fit into 90 ticks a second. What the boxes do depends on the actions only; how
## long that takes depends on the machine.

const MOST_BODIES: int = 600
const HALF_M: float = 6.0
const BOX_M: float = 0.5
const DROP_M: float = 6.0
const LOST_BELOW_M: float = -6.0
## Of a throw: reach around the middle of the tray, and speed.
const REACH_M: float = 4.0
const THROW_MPS: float = 5.0
const INSPECT_TICKS: int = 6
## A box that gains more speed between two looks without a throw was pushed out of another.
const JITTER_MPS: float = 12.0
const TICKS_PER_ACTION: float = 18.0
const LAYERS: Array[int] = [2, 4]
const REWARDS: Dictionary[String, float] = {
	"in_budget": 1.0, "slow_tick": 10.0, "jitter": 5.0, "load": 2.0
}

var task: String = "stress"
var bodies: Array[RigidBody3D] = []
var awake: int = 0
var on_layers: PackedInt32Array = [0, 0]
## Of this episode.
var spawned: int = 0
var thrown: int = 0
var jitters: int = 0
var tunnelled: int = 0
var slow_ticks: int = 0
var most_awake: int = 0
var awake_sum: float = 0.0
var tick_ms_sum: float = 0.0
var bursts: int = 0

var _pool: Array[RigidBody3D] = []
var _quiet_tick: int = 0
var _shape: BoxShape3D = BoxShape3D.new()
var _mesh: BoxMesh = BoxMesh.new()

@onready var agent: PhysicsStressController = $AIController3D
@onready var _particles: CPUParticles3D = $Particles


func setup() -> void:
	agent.perf_monitor = VoxelPerformanceMonitor.of(get_tree())
	task = RLParameters.text("task", task)
	_shape.size = Vector3.ONE * BOX_M
	_mesh.size = _shape.size


func begin() -> void:
	for body: RigidBody3D in bodies:
		_retire(body)
	bodies.clear()
	spawned = 0
	thrown = 0
	jitters = 0
	tunnelled = 0
	slow_ticks = 0
	most_awake = 0
	awake_sum = 0.0
	tick_ms_sum = 0.0
	bursts = 0
	awake = 0
	_quiet_tick = 0
	spawn(clampi(int(parameter("start_bodies", 0.0)), 0, MOST_BODIES))


func tick(_delta: float) -> void:
	if ticks % INSPECT_TICKS == 0:
		_inspect()
	var msec: float = agent.perf_monitor.physics_ms
	awake_sum += awake
	tick_ms_sum += msec
	most_awake = maxi(most_awake, awake)
	var is_slow: bool = msec > VoxelPerformanceMonitor.BUDGET_MS
	slow_ticks += 1 if is_slow else 0
	var load_share: float = awake / float(MOST_BODIES)
	var earned: float = 0.0
	if task == "stress":
		earned = REWARDS["slow_tick"] if is_slow else 0.0
		earned += REWARDS["load"] * load_share
	else:
		earned = -REWARDS["slow_tick"] if is_slow else REWARDS["in_budget"] * load_share
	agent.reward += earned / TICKS_PER_ACTION


func steer_by_hand() -> void:
	if ticks % int(TICKS_PER_ACTION) == 0:
		var stick: Vector2 = HandInput.stick()
		spawn(10 if Input.is_physical_key_pressed(KEY_B) else 0)
		throw_bodies(Vector3(stick.x, 1.0 if HandInput.take_teleport() else 0.0, -stick.y))
		if Input.is_physical_key_pressed(KEY_P):
			burst()


func describe(_agent: FeatureAgent) -> Dictionary:
	return {
		"spawned": spawned,
		"thrown": thrown,
		"bodies": bodies.size(),
		"awake_mean": awake_sum / maxi(ticks, 1),
		"most_awake": most_awake,
		"tick_mean_ms": tick_ms_sum / maxi(ticks, 1),
		"slow_ticks": slow_ticks,
		"jitters": jitters,
		"tunnelled": tunnelled,
		"bursts": bursts,
		"memory_mb": OS.get_static_memory_usage() / VoxelPerformanceMonitor.BYTES_PER_MB,
		"success": slow_ticks > 0 or jitters > 0 if task == "stress" else slow_ticks == 0,
	}


func spawn(count: int) -> void:
	for _box: int in count:
		var body: RigidBody3D = _pool.pop_back() if _pool else _make_body()
		if bodies.size() >= MOST_BODIES:
			_pool.append(body)
			body = bodies.pop_front()
		bodies.append(body)
		var reach: float = 0.25 * HALF_M
		var at: Vector3 = Vector3(random.randf_range(-reach, reach), 0.0, 0.0)
		at.z = random.randf_range(-reach, reach)
		at.y = DROP_M + random.randf_range(0.0, 3.0)
		if not body.is_inside_tree():
			add_child(body)
		body.transform = Transform3D(Basis.IDENTITY, at)
		body.linear_velocity = Vector3.ZERO
		body.angular_velocity = Vector3.ZERO
		body.sleeping = false
		body.collision_layer = LAYERS[0]
		body.set_meta(&"speed", 0.0)
		spawned += 1


## Throw all boxes near the middle of the tray; of length 1 at most.
func throw_bodies(direction: Vector3) -> void:
	if direction.length() < 0.1:
		return
	_quiet_tick = ticks + INSPECT_TICKS
	for body: RigidBody3D in bodies:
		if Vector2(body.position.x, body.position.z).length() < REACH_M:
			body.apply_central_impulse(direction * THROW_MPS * body.mass)
			body.collision_layer = LAYERS[1]
			thrown += 1


func burst() -> void:
	bursts += 1
	_particles.restart()
	_particles.emitting = true


## Count who is awake, lost or shaken.
func _inspect() -> void:
	awake = 0
	on_layers = [0, 0]
	var lost: Array[RigidBody3D] = []
	for body: RigidBody3D in bodies:
		var speed: float = body.linear_velocity.length()
		awake += 0 if body.sleeping else 1
		on_layers[0 if body.collision_layer == LAYERS[0] else 1] += 1
		if speed - body.get_meta(&"speed") > JITTER_MPS and ticks > _quiet_tick:
			jitters += 1
			agent.reward += REWARDS["jitter"] * (1.0 if task == "stress" else -1.0)
		body.set_meta(&"speed", speed)
		if body.position.y < LOST_BELOW_M:
			lost.append(body)
			if absf(body.position.x) < HALF_M and absf(body.position.z) < HALF_M:
				tunnelled += 1
	for body: RigidBody3D in lost:
		bodies.erase(body)
		_retire(body)


func _make_body() -> RigidBody3D:
	var body: RigidBody3D = RigidBody3D.new()
	var holder: CollisionShape3D = CollisionShape3D.new()
	holder.shape = _shape
	body.add_child(holder)
	var drawn: MeshInstance3D = MeshInstance3D.new()
	drawn.mesh = _mesh
	body.add_child(drawn)
	body.mass = 5.0
	body.collision_mask = 1 + LAYERS[0] + LAYERS[1]
	return body


func _retire(body: RigidBody3D) -> void:
	remove_child(body)
	_pool.append(body)


func _notification(what: int) -> void:
	if what == NOTIFICATION_PREDELETE:
		for body: RigidBody3D in _pool:
			body.free()
