class_name FeatureIsland
extends Node3D
## An island of a FeatureScene: its agents, and the seed, time limit and end of their episodes.
##
## A scene's rules extend it: they override `begin`, `tick`, `steer_by_hand` and `describe`, draw
## from `random`, add to the agents' rewards and call `end`. All agents of an island start and end
## together.

## How long an episode may last; the parameter `max_sec` goes first.
@export_range(1.0, 600.0, 1.0, "suffix:s") var limit_sec: float = 60.0

var agents: Array[FeatureAgent] = []
var random: RandomNumberGenerator = RandomNumberGenerator.new()
## Of this episode.
var ticks: int = 0
var limit_ticks: int = 0


func _ready() -> void:
	agents.assign(find_children("*", "FeatureAgent", true, false))
	for agent: FeatureAgent in agents:
		agent.island = self
		agent.init(agent.get_parent())
	if DisplayServer.get_name() == "headless":
		# A body that moves tells its meshes so in every tick.
		for mesh: Node in find_children("*", "MeshInstance3D"):
			if mesh.owner == self and mesh.get_parent() is CollisionObject3D:
				mesh.queue_free()
	setup()
	start()


func _physics_process(delta: float) -> void:
	if agents.any(func(agent: FeatureAgent) -> bool: return agent.needs_reset):
		start()
		return
	if agents[0].heuristic == "human":
		agents[0].summary = {}
		steer_by_hand()
	ticks += 1
	tick(delta)
	if ticks >= limit_ticks:
		time_out()
		end({"timeout": true}, true)


## Virtual: once, when the agents are known.
func setup() -> void:
	pass


## Virtual: put everything at its start.
func begin() -> void:
	pass


## Virtual: play a tick and reward it.
func tick(_delta: float) -> void:
	pass


## Virtual: let keyboard and mouse act for the first agent.
func steer_by_hand() -> void:
	pass


## Virtual: the time is over; reward that.
func time_out() -> void:
	pass


## Virtual: figures of an agent's episode, as its last info has them and a person sees them.
func describe(_agent: FeatureAgent) -> Dictionary:
	return {}


## Virtual: what the camera follows.
func focus() -> Node3D:
	return self


## A parameter of this episode.
func parameter(key: String, default: float) -> float:
	return RLParameters.number(key, default, agents[0])


func start() -> void:
	for agent: FeatureAgent in agents:
		agent.reset()
	random.seed = agents[0].episode_seed
	ticks = 0
	limit_ticks = maxi(int(parameter("max_sec", limit_sec) * FeatureScene.TICKS_PER_SECOND), 1)
	begin()


## The episode is over; the next one starts.
func end(outcome: Dictionary, is_truncated: bool = false) -> void:
	for agent: FeatureAgent in agents:
		agent.summary = {"success": false, "timeout": false}.merged(describe(agent), true)
		agent.summary.merge(outcome, true)
		agent.summary["time_sec"] = ticks / float(FeatureScene.TICKS_PER_SECOND)
	if get_parent() is FeatureScene:
		get_parent().record_episode(agents[0].summary)
	for agent: FeatureAgent in agents:
		if is_truncated:
			agent.truncated = true
		else:
			agent.done = true
	start()
