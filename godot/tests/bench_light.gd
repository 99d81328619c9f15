extends Node
## A game that is never the limit: many agents that see much, and almost nothing to reckon.
##
## `--agents=64` says how many. They see 64 numbers, choose one of four, and get something for the
## choice that the first number asks for.

var _agents: int = 64


func _ready() -> void:
	for word: String in OS.get_cmdline_args() + OS.get_cmdline_user_args():
		if word.begins_with("--agents="):
			_agents = word.get_slice("=", 1).to_int()
	for i: int in _agents:
		add_child(LightAgent.new())
	add_child(Sync.new())


class LightAgent:
	extends AIController3D

	const SEEN: int = 64
	const CHOICES: int = 4

	var _seen: Array[float] = []
	var _asked: int = 0

	func _init() -> void:
		_seen.resize(SEEN)
		_seen.fill(0.25)
		reset_after = 800

	func _physics_process(delta: float) -> void:
		super._physics_process(delta)
		if needs_reset:
			reset()

	func get_obs() -> Dictionary:
		_asked = randi() % CHOICES
		_seen[0] = _asked / float(CHOICES)
		return {"obs": _seen}

	func get_action_space() -> Dictionary:
		return {"choice": {"size": CHOICES, "action_type": "discrete"}}

	func set_action(action: Variant) -> void:
		reward += 1.0 if action["choice"] == _asked else 0.0
