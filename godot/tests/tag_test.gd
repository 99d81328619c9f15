class_name TagTest
extends Node
## What a test has to hand: checks, matches set up by hand, and frames to wait for.
##
## A test is a method `test_*` of a script `res://tests/test_*.gd` that extends this. Each gets an
## instance of its own in the tree, freed afterwards with all its children. A test may be a
## coroutine; it must check something, and any error that is logged meanwhile fails it too.

## Longest value that a message shows whole.
const SHOWN: int = 120

## Physics frames after which the test is given up; a test that needs more sets it first.
var frame_limit: int = 3600
## How many checks were made.
var checks: int = 0
var failures: PackedStringArray = []
## Parts of the error messages that may be logged during the test.
var allowed_errors: PackedStringArray = []


func check(condition: bool, message: String) -> void:
	checks += 1
	if not condition:
		failures.append(message)


## The same value and the same type.
func check_equal(actual: Variant, expected: Variant, message: String) -> void:
	var same: bool = typeof(actual) == typeof(expected) and actual == expected
	check(same, "%s: expected %s, got %s" % [message, _show(expected), _show(actual)])


## No further from what is expected than `tolerance`; NaN never is near.
func check_near(actual: float, expected: float, tolerance: float, message: String) -> void:
	var near: bool = absf(actual - expected) <= tolerance
	check(near, "%s: expected %s within %s, got %s" % [message, expected, tolerance, actual])


## Let errors pass whose text contains `part`.
func allow_error(part: String) -> void:
	allowed_errors.append(part)


## Let the tree play `count` physics ticks.
func frames(count: int = 1) -> void:
	for _frame: int in count:
		await get_tree().physics_frame


## Let the tree play until something is seen, for at most 10 s.
func until(seen: Callable) -> void:
	var deadline: int = Time.get_ticks_msec() + 10000
	frame_limit = 1000000
	while not seen.call() and Time.get_ticks_msec() < deadline:
		OS.delay_msec(1)
		await frames(1)
	check(seen.call(), "it did not happen within 10 s")


## Press and release a key.
func strike(key: Key) -> void:
	for pressed: bool in [true, false]:
		var event: InputEventKey = InputEventKey.new()
		event.physical_keycode = key
		event.keycode = key
		event.pressed = pressed
		Input.parse_input_event(event)
		await frames(2)


## The game's rules with a decision every tick, so that every tick can be looked at.
static func tick_rules(rule_set: String = "transfer") -> TagRules:
	var rules: TagRules = TagRules.read(rule_set)
	rules.decision_ticks = 1
	return rules


## A match with the two agents at rest at these places (x, y, z), facing +z, knowing nothing.
static func staged(
	rules: TagRules, layout: String, first: PackedFloat64Array, second: PackedFloat64Array
) -> TagMatch:
	var game: TagMatch = TagMatch.new(rules, [TagLayout.read(layout, rules)])
	game.begin(0)
	place(game.agents[0], first, rules)
	place(game.agents[1], second, rules)
	return game


## Set an agent at rest at a place (x, y, z).
static func place(agent: TagAgent, at: PackedFloat64Array, rules: TagRules) -> void:
	agent.settle(rules.stop_floor)
	agent.x = at[0]
	agent.y = at[1]
	agent.z = at[2]


## Nobody can be tagged for as long as a test may take.
static func make_immune(game: TagMatch) -> void:
	for agent: TagAgent in game.agents:
		agent.immune_ticks = 1000000


## An action: run along (x, z), jump if `jump` is above the threshold.
static func act(x: float = 0.0, z: float = 0.0, jump: float = 0.0) -> PackedFloat32Array:
	return PackedFloat32Array([x, z, jump])


## Play one decision after another with the same two actions.
static func play(
	game: TagMatch,
	decisions: int,
	first: PackedFloat32Array = act(),
	second: PackedFloat32Array = act()
) -> void:
	for _decision: int in decisions:
		game.decide(first, second)


func _show(value: Variant) -> String:
	var text: String = str(value)
	return text if text.length() <= SHOWN else text.left(SHOWN) + "…"
