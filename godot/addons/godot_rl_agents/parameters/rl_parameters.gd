class_name RLParameters
extends RefCounted
## Numbers and words of the game that a trainer may set, such as gravity or the distance of a goal.
##
## Read them where an episode starts, or whenever they are needed: they change only when an episode
## starts. Without a trainer they are what the command line says (`--parameter.gravity=9.8`), else
## the default of the RLParameterSet of Sync, else the one given here.


## A number. With an agent (its AIController) that agent's, else that of the whole game, which is
## that of its first agent.
static func number(name: String, default: float, agent: Node = null) -> float:
	var value: Variant = RLAddon.ParameterStore.value(name, default, agent)
	return value if value is float else default


## A word, in the same way.
static func text(name: String, default: String, agent: Node = null) -> String:
	return str(RLAddon.ParameterStore.value(name, default, agent))


## Emitted with the agent whose values have changed:
## `RLParameters.changed().connect(func(agent: Node) -> void: …)`
static func changed() -> Signal:
	return RLAddon.ParameterStore.changed_signal()
