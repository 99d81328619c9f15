extends Node3D
## A 3D game with many rays, made for the benchmarks in the manner of most games with agents: a
## driver in a walled yard of pillars looks around with 36 rays and drives to a goal.
##
## `--copies=N` on the command line says how many yards there are.

const HALF: float = 10.0
const SPACING: float = 30.0
const PILLARS: int = 12


func _ready() -> void:
	var copies: int = ExampleCopies.count(16)
	for index: int in copies:
		var yard: Node3D = Node3D.new()
		var place: Vector2 = SPACING * ExampleCopies.place(index, copies)
		yard.position = Vector3(place.x, 0.0, place.y)
		add_child(yard)
		_build(yard, index)
		yard.add_child(Driver.new())


func _build(yard: Node3D, index: int) -> void:
	var random: RandomNumberGenerator = RandomNumberGenerator.new()
	random.seed = index
	_add_box(yard, Vector3(0.0, -0.5, 0.0), Vector3(2.0 * HALF, 1.0, 2.0 * HALF))
	for side: float in [-HALF, HALF]:
		_add_box(yard, Vector3(side, 1.5, 0.0), Vector3(0.5, 3.0, 2.0 * HALF))
		_add_box(yard, Vector3(0.0, 1.5, side), Vector3(2.0 * HALF, 3.0, 0.5))
	for pillar: int in PILLARS:
		var angle: float = TAU * pillar / PILLARS
		var away: float = random.randf_range(4.0, 8.0)
		var place: Vector3 = Vector3(away * cos(angle), 1.0, away * sin(angle))
		_add_box(yard, place, Vector3(1.0, 2.0, 1.0))


func _add_box(yard: Node3D, place: Vector3, size: Vector3) -> void:
	var body: StaticBody3D = StaticBody3D.new()
	var shape: CollisionShape3D = CollisionShape3D.new()
	var box: BoxShape3D = BoxShape3D.new()
	box.size = size
	shape.shape = box
	body.add_child(shape)
	body.position = place
	yard.add_child(body)


class Driver:
	extends CharacterBody3D
	## Steers and drives; a bump into something costs a little, the goal gives 1.

	const SPEED: float = 6.0
	const TURN_SPEED: float = 3.0
	const START: Vector3 = Vector3(0.0, 0.6, 0.0)

	var steer: float = 0.0
	var thrust: float = 0.0
	var goal: Vector3 = Vector3.ZERO
	var controller: Controller = Controller.new()

	var _random: RandomNumberGenerator = RandomNumberGenerator.new()

	func _ready() -> void:
		var shape: CollisionShape3D = CollisionShape3D.new()
		shape.shape = SphereShape3D.new()
		add_child(shape)
		add_child(controller)
		controller.init(self)
		controller.reset_after = 1000
		controller.needs_reset = true

	func _physics_process(delta: float) -> void:
		if controller.needs_reset:
			controller.reset()
			_restart()
			return
		rotate_y(steer * TURN_SPEED * delta)
		velocity = thrust * SPEED * basis.z + (get_gravity().y * delta + velocity.y) * Vector3.UP
		move_and_slide()
		var before: float = position.distance_to(goal)
		if is_on_wall():
			controller.reward -= 0.01
		if before < 1.5:
			controller.reward += 1.0
			controller.done = true
			controller.needs_reset = true

	func _restart() -> void:
		_random.seed = controller.episode_seed
		position = START
		rotation = Vector3(0.0, _random.randf() * TAU, 0.0)
		velocity = Vector3.ZERO
		goal = Vector3(9.0, 0.6, 0.0).rotated(Vector3.UP, _random.randf() * TAU)


class Controller:
	extends AIController3D
	## Sees with 6 × 6 rays, and where the goal is.

	var _eyes: RayCastSensor3D = RayCastSensor3D.new()

	func _ready() -> void:
		_eyes.cone_width = 120.0
		_eyes.cone_height = 40.0
		add_child(_eyes)

	func get_obs() -> Dictionary:
		var way: Vector3 = to_local(_player.get_parent().to_global(_player.goal))
		var obs: Array = _eyes.get_observation()
		obs.append_array([way.x / 20.0, way.z / 20.0, _player.velocity.length() / 6.0])
		return {"obs": obs}

	func get_action_space() -> Dictionary:
		return {
			"steer": {"size": 1, "action_type": "continuous"},
			"thrust": {"size": 1, "action_type": "continuous"},
		}

	func set_action(action: Variant) -> void:
		_player.steer = clampf(action["steer"][0], -1.0, 1.0)
		_player.thrust = clampf(action["thrust"][0], -1.0, 1.0)
