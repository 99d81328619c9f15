class_name MultiAgentArena
extends FeatureIsland
## Up to four people in one room. In the task `gather` they meet without bumping into each other; in
## `chase` half of them, the policy `chaser`, catch one of the others, the policy `runner`.

const HALF_M: float = 10.0
const MARGIN_M: float = 1.5
const APART_M: float = 4.0
const MEETING_M: float = 2.5
const CATCH_M: float = 1.0
const TRIES: int = 100
const CHASER: Color = Color(0.85, 0.3, 0.2)
const RUNNER: Color = Color(0.2, 0.5, 0.9)
const REWARDS: Dictionary[String, float] = {
	"met": 10.0, "collision": -0.5, "caught": 10.0, "escaped": 5.0, "per_metre": 0.5
}

var task: String = "gather"

var _is_caught: bool = false


func _enter_tree() -> void:
	var players: int = clampi(int(RLParameters.number("players", 4.0)), 2, 4)
	for rig: Node in find_children("*", "VRRig", false, false).slice(players):
		rig.free()


func _process(_delta: float) -> void:
	for agent: MultiAgentVRController in agents:
		agent.player_body.pose()


func setup() -> void:
	task = RLParameters.text("task", task)
	for i: int in agents.size():
		var agent: MultiAgentVRController = agents[i]
		agent.other_agents.assign(agents.filter(func(other: Node) -> bool: return other != agent))
		agent.player_body.hit.connect(_on_hit.bind(agent))
		if task == "chase":
			agent.role = 1 if i % 2 == 0 else -1
			agent.policy_name = "chaser" if agent.role > 0 else "runner"
			_paint(agent.player_body, CHASER if agent.role > 0 else RUNNER)


func begin() -> void:
	var chaser_mps: float = parameter("chaser_mps", 2.6)
	var runner_mps: float = parameter("runner_mps", 2.5)
	_is_caught = false
	var taken: PackedVector3Array = []
	for agent: MultiAgentVRController in agents:
		taken.append(_free_place(taken))
		agent.player_body.max_speed_mps = chaser_mps if agent.role > 0 else runner_mps
		agent.player_body.place(taken[-1], random.randf_range(-PI, PI))
		agent.wish = Vector2.ZERO
		agent.collisions = 0
	for agent: MultiAgentVRController in agents:
		agent.potential = _potential(agent)


func tick(delta: float) -> void:
	for agent: MultiAgentVRController in agents:
		_walk(agent, delta)
	for agent: MultiAgentVRController in agents:
		var potential: float = _potential(agent)
		agent.reward += potential - agent.potential
		agent.potential = potential
	if task == "gather":
		if widest_m() < MEETING_M:
			for agent: MultiAgentVRController in agents:
				agent.reward += REWARDS["met"]
			var is_clean: bool = agents.all(
				func(agent: MultiAgentVRController) -> bool: return agent.collisions == 0
			)
			end({"met": true, "success": is_clean})
	elif _nearest_chase_m() < CATCH_M:
		_is_caught = true
		_pay_chase(REWARDS["caught"])
		end({})


func time_out() -> void:
	if task == "chase":
		_pay_chase(-REWARDS["escaped"])


func steer_by_hand() -> void:
	var stick: Vector2 = HandInput.stick()
	agents[0].wish = Vector2(stick.x, -stick.y)


func describe(agent: FeatureAgent) -> Dictionary:
	return {
		"met": false,
		"caught": _is_caught,
		"success": task == "chase" and (agent.role > 0) == _is_caught,
		"collisions": agent.collisions,
		"widest_m": widest_m(),
		"opponent_m": agent.nearest_opponent_m(),
	}


## The greatest distance between two of them.
func widest_m() -> float:
	var found: float = 0.0
	for agent: MultiAgentVRController in agents:
		for other: MultiAgentVRController in agent.other_agents:
			var way: float = agent.player_body.position.distance_to(other.player_body.position)
			found = maxf(found, way)
	return found


func _walk(agent: MultiAgentVRController, delta: float) -> void:
	var rig: VRRig = agent.player_body
	var yaw: float = rig.rotation.y
	var local: Vector3 = Vector3(agent.wish.x, 0.0, agent.wish.y).rotated(Vector3.UP, -yaw)
	rig.stick = Vector2(local.x, -local.z)
	var turn: float = atan2(-local.x, -local.z) if agent.wish.length() > 0.1 else 0.0
	rig.turn = clampf(-2.0 * turn, -1.0, 1.0)
	rig.tick(delta)


## To be near the others, the nearest runner, or far from the nearest chaser.
func _potential(agent: MultiAgentVRController) -> float:
	if task == "chase":
		return -agent.role * REWARDS["per_metre"] * agent.nearest_opponent_m()
	var sum: float = 0.0
	for other: MultiAgentVRController in agent.other_agents:
		sum += agent.player_body.position.distance_to(other.player_body.position)
	return -REWARDS["per_metre"] * sum / agent.other_agents.size()


## The distance of the nearest chaser and runner.
func _nearest_chase_m() -> float:
	var found: float = INF
	for agent: MultiAgentVRController in agents:
		if agent.role > 0 and agent.nearest_opponent_m() >= 0.0:
			found = minf(found, agent.nearest_opponent_m())
	return found


func _pay_chase(amount: float) -> void:
	for agent: MultiAgentVRController in agents:
		agent.reward += agent.role * amount


func _free_place(taken: PackedVector3Array) -> Vector3:
	var reach: float = HALF_M - MARGIN_M
	var at: Vector3 = Vector3.ZERO
	for _try: int in TRIES:
		at = Vector3(random.randf_range(-reach, reach), 0.0, random.randf_range(-reach, reach))
		var is_free: Callable = func(other: Vector3) -> bool: return other.distance_to(at) > APART_M
		if Array(taken).all(is_free):
			break
	return at


func _paint(rig: VRRig, color: Color) -> void:
	var paint: StandardMaterial3D = StandardMaterial3D.new()
	paint.albedo_color = color
	for part: String in ["Torso", "Head"]:
		for mesh: Node in rig.find_children(part, "MeshInstance3D"):
			mesh.material_override = paint


func _on_hit(_normal: Vector3, agent: MultiAgentVRController) -> void:
	agent.collisions += 1
	agent.reward += REWARDS["collision"]
