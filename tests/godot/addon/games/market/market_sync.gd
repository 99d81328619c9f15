extends "res://addons/godot_rl_agents/sync.gd"
# A game's own Sync, as games have it.


func _initialize():
	super._initialize()
	Engine.physics_ticks_per_second = int(_get_speedup() * 30)


func _set_heuristic(heuristic, nodes):
	for agent in nodes:
		assert(agent in all_agents)
	super._set_heuristic(heuristic, nodes)
