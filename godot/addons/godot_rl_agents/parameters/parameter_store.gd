extends RefCounted
## The game's parameters: which there are, and the values in force for the game and every agent.

## What RLParameters.changed returns, of the one instance.
signal changed(agent: Node)

const MOST: int = 256
const LONGEST_NAME: int = 64
const LONGEST_TEXT: int = 256
const ARGUMENT: String = "parameter."
## The metadata of an agent's node that holds its values.
const META: StringName = &"rl_parameters"

## The id of the agent whose values are those of the game.
static var first_id: int = 0

static var _instance: RefCounted
## The values of the game, from the trainer.
static var _game: Dictionary = {}
## Every parameter that was declared or read, as the trainer is told of it.
static var _known: Dictionary[String, Dictionary] = {}
static var _declared: Resource
## The values of the command line, and declared defaults.
static var _fixed: Dictionary = {}


static func changed_signal() -> Signal:
	if not _instance:
		_instance = RLAddon.ParameterStore.new()
	return Signal(_instance, &"changed")


## The value in force.
static func value(name: String, default: Variant, agent: Node) -> Variant:
	if name not in _known:
		_add({"name": name, "default": default})
	var values: Dictionary = agent.get_meta(META, _game) if agent else _game
	return values.get(name, _fixed.get(name, default))


## The values that the trainer has set for an agent.
static func values_of(agent: Node) -> Dictionary:
	return agent.get_meta(META, {})


## Put the values of an agent's episode that starts in force.
static func apply(agent: Node, id: int, values: Dictionary) -> void:
	var is_new: bool = values != values_of(agent)
	agent.set_meta(META, values)
	if id == first_id:
		_game = values
	if is_new:
		changed_signal().emit(agent)


## An agent that joins plays with the values of the game.
static func welcome(agent: Node) -> void:
	if _game:
		agent.set_meta(META, _game)


## Add the parameters of an RLParameterSet.
static func declare(declared: Resource) -> void:
	if not declared or declared == _declared or not declared.has_method(&"problems"):
		return
	_declared = declared
	for problem: String in declared.problems():
		push_warning("Godot RL Agents: parameters: " + problem)
	for spec: Dictionary in declared.describe():
		_fixed[spec["name"]] = spec["default"]
		_add(spec)


## All parameters that were declared or read.
static func all() -> Array[Dictionary]:
	var found: Array[Dictionary] = []
	found.assign(_known.values().slice(0, MOST))
	return found


## What is wrong with an agent's values in a message, or "".
static func problem_of(values: Variant) -> String:
	if not values is Dictionary or values.size() > MOST:
		return "expected an object of at most %d values" % MOST
	for name: Variant in values:
		var given: Variant = values[name]
		if not name or name.length() > LONGEST_NAME:
			return "a name needs 1 to %d characters" % LONGEST_NAME
		if given is int:
			values[name] = float(given)
		elif not (given is float and is_finite(given) or given is String):
			return "%s: expected a number or a text, got %s" % [name, str(given).left(80)]
		elif given is String and given.length() > LONGEST_TEXT:
			return "%s: a text has at most %d characters" % [name, LONGEST_TEXT]
	return ""


static func _add(spec: Dictionary) -> void:
	var name: String = spec["name"]
	_known[name] = spec
	var typed: Dictionary[String, String] = RLAddon.Arguments.read()
	if ARGUMENT + name not in typed:
		return
	var given: String = typed[ARGUMENT + name]
	if spec["default"] is String:
		_fixed[name] = given
	elif given.is_valid_float():
		_fixed[name] = given.to_float()
	else:
		push_warning("Godot RL Agents: parameter %s: expected a number, got %s" % [name, given])
