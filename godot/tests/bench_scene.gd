extends SceneTree
## How fast a game with agents goes by itself: nobody trains, but all look, act and are paid.
##
## Run as `godot --headless --path godot --fixed-fps 60 -s res://tests/bench_scene.gd
## -- --scene=res://examples/marble/marble.tscn --port=4000 --action_repeat=8`. Connects to the port
## and says how many agents there are; then for every line with a number it plays as many steps, and
## says how many microseconds they took.

const CONNECT_MSEC: int = 5000

var _agents: Array[Node] = []
var _scene: String = ""
var _repeat: int = 8
var _ticks: int = 0
var _steps_left: int = 0
var _start: int = 0
var _peer: StreamPeerTCP = StreamPeerTCP.new()


func _initialize() -> void:
	var port: int = 0
	for word: String in OS.get_cmdline_user_args():
		var value: String = word.get_slice("=", 1)
		match word.get_slice("=", 0):
			"--scene":
				_scene = value
			"--port":
				port = value.to_int()
			"--action_repeat":
				_repeat = value.to_int()
	_peer.connect_to_host("127.0.0.1", port)
	while _peer.get_status() == StreamPeerTCP.STATUS_CONNECTING:
		_peer.poll()
		OS.delay_msec(1)
		if Time.get_ticks_msec() > CONNECT_MSEC:
			break
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
		_say(_agents.size())
	for agent: Node in _agents:
		_step(agent)
	_steps_left -= 1
	if _steps_left <= 0:
		if _start:
			_say(Time.get_ticks_usec() - _start)
		_steps_left = _ask()
		_start = Time.get_ticks_usec()
	return _steps_left == 0


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


func _say(number: int) -> void:
	_peer.put_data(("%d\n" % number).to_ascii_buffer())


## How many steps to play; 0 when nobody is there any more.
func _ask() -> int:
	var line: String = ""
	while not line.ends_with("\n"):
		_peer.poll()
		if _peer.get_status() != StreamPeerTCP.STATUS_CONNECTED:
			return 0
		if _peer.get_available_bytes() > 0:
			line += char(_peer.get_u8())
		else:
			OS.delay_msec(1)
	return line.to_int()
