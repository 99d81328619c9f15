extends SceneTree
## How fast a game with agents goes by itself: nobody listens, but all look, act and are paid.
##
## Run as `godot --headless --path godot --fixed-fps 60 -s res://tests/bench_scene.gd
## -- --scene=res://examples/marble/marble.tscn --seconds=2 --action_repeat=8`. Prints one JSON
## object: the agents, and the agent-steps a second.

const WARM_UP_STEPS: int = 30

var _agents: Array[Node] = []
var _scene: String = ""
var _seconds: float = 2.0
var _repeat: int = 8
var _ticks: int = 0
var _steps: int = 0
var _start: int = 0


func _initialize() -> void:
	for word: String in OS.get_cmdline_user_args():
		var value: String = word.get_slice("=", 1)
		match word.get_slice("=", 0):
			"--scene":
				_scene = value
			"--seconds":
				_seconds = value.to_float()
			"--action_repeat":
				_repeat = value.to_int()
	var game: Node = (load(_scene) as PackedScene).instantiate()
	for sync: Node in game.find_children("*", "Sync", true, false):
		sync.free()
	root.add_child(game)


func _physics_process(_delta: float) -> bool:
	_ticks += 1
	if _ticks % _repeat != 0:
		return false
	if not _agents:
		_agents = get_nodes_in_group(&"AGENT")
		for agent: Node in _agents:
			agent.call(&"set_heuristic", "model")
	for agent: Node in _agents:
		_step(agent)
	_steps += 1
	if _steps == WARM_UP_STEPS:
		_start = Time.get_ticks_usec()
	return _steps > WARM_UP_STEPS and _is_over()


func _step(agent: Node) -> void:
	agent.call(&"get_obs")
	agent.call(&"get_reward")
	agent.call(&"zero_reward")
	agent.call(&"set_done_false")
	var action: Dictionary = {}
	var spaces: Dictionary = agent.call(&"get_action_space")
	for key: String in spaces:
		var size: int = spaces[key]["size"]
		if spaces[key]["action_type"] == "discrete":
			action[key] = randi() % size
		else:
			action[key] = range(size).map(func(_k: int) -> float: return randf_range(-1.0, 1.0))
	agent.call(&"set_action", action)


func _is_over() -> bool:
	var seconds: float = (Time.get_ticks_usec() - _start) / 1e6
	if seconds < _seconds:
		return false
	var rate: float = (_steps - WARM_UP_STEPS) * _agents.size() / seconds
	print(JSON.stringify({"agents": _agents.size(), "agent_steps_per_s": rate}))
	return true
