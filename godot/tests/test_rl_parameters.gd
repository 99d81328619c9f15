extends TagTest
## Parameters in the game: their set in the editor, and which value is read.

const MARBLE: String = "res://examples/marble/marble_arena.tscn"

var _changes: Array[Node] = []


func test_a_good_set_has_no_warnings() -> void:
	for path: String in [
		"res://examples/marble/marble_parameters.tres",
		"res://examples/orchard/orchard_parameters.tres",
	]:
		var declared: RLParameterSet = load(path)
		check_equal(declared.problems(), PackedStringArray(), path)
		check(declared.parameters.size() >= 6, "parameters")
		check_equal(_warnings_of(declared), PackedStringArray(), "warnings of Sync")


func test_a_bad_set_is_explained_in_the_editor() -> void:
	var declared: RLParameterSet = RLParameterSet.new()
	declared.parameters = [
		_parameter("", 0.0, 0.0, 1.0),
		_parameter("wind", 2.0, 0.0, 1.0),
		_parameter("gravity", 0.0, 1.0, -1.0),
		_parameter("x".repeat(65), 0.0, 0.0, 1.0),
		_parameter("good", 0.5, 0.0, 1.0),
		_parameter("good", 0.5, 0.0, 1.0),
		_parameter("far", INF, 0.0, 0.0),
		null,
	]
	var expected: PackedStringArray = [
		"Parameters: a name needs 1 to 64 characters.",
		"Parameters: wind: its default 2.0 is not within 0.0 to 1.0.",
		"Parameters: gravity: low is above high.",
		"Parameters: a name needs 1 to 64 characters.",
		"Parameters: good is declared twice.",
		"Parameters: far: its numbers must be finite.",
		"Parameters: an entry is empty.",
	]
	check_equal(_warnings_of(declared), expected, "warnings")
	declared.parameters = []
	for number: int in 257:
		declared.parameters.append(_parameter(str(number), 0.0, 0.0, 0.0))
	check_equal(_warnings_of(declared)[0], "Parameters: there are more than 256.", "many")


func test_what_a_trainer_is_told() -> void:
	var declared: RLParameterSet = RLParameterSet.new()
	declared.parameters = [_parameter("wind", 0.5, 0.0, 1.0), _parameter("free", 7.0, 0.0, 0.0)]
	declared.parameters[0].unit = "N"
	var map: RLParameter = _parameter("map", 0.0, 0.0, 0.0)
	map.choices = ["small", "large"]
	declared.parameters.append(map)
	var told: Array[Dictionary] = [
		{"name": "wind", "default": 0.5, "unit": "N", "low": 0.0, "high": 1.0},
		{"name": "free", "default": 7.0, "unit": ""},
		{"name": "map", "default": "small", "unit": "", "choices": ["small", "large"]},
	]
	check_equal(declared.describe(), told, "told")


func test_an_agents_values_are_its_own() -> void:
	var ann: Node = _child("Ann")
	var bob: Node = _child("Bob")
	RLParameters.changed().connect(_on_changed)
	check_equal(RLParameters.number("test_speed", 3.0, ann), 3.0, "the default")
	RLAddon.ParameterStore.apply(ann, 99, {"test_speed": 4.0, "test_map": "large"})
	RLAddon.ParameterStore.apply(ann, 99, {"test_speed": 4.0, "test_map": "large"})
	RLParameters.changed().disconnect(_on_changed)
	check_equal(RLParameters.number("test_speed", 3.0, ann), 4.0, "of Ann")
	check_equal(RLParameters.text("test_map", "small", ann), "large", "a word")
	check_equal(RLParameters.number("test_map", 5.0, ann), 5.0, "a word is no number")
	check_equal(RLParameters.number("test_speed", 3.0, bob), 3.0, "of Bob")
	check_equal(RLParameters.number("test_speed", 3.5), 3.5, "of the game")
	check_equal(_changes, [ann] as Array[Node], "told once")


func test_a_marble_as_it_is_asked_for() -> void:
	var arena: MarbleArena = load(MARBLE).instantiate()
	add_child(arena)
	await frames(2)
	var ball: MarbleBall = arena.get_node(^"Ball")
	check_equal(ball.controller.reset_after, 900, "ticks")
	check(not ball.physics_material_override, "material")
	for distance: float in [1.0, 4.0, 9.0, 10.0]:
		for seed_of_episode: int in 20:
			var start: Vector3 = arena.restart(seed_of_episode, distance, 2)
			check_near(start.distance_to(arena.goal.position), distance, 0.25, "distance")
	check_equal(arena.get_node(^"Pillars/Pillar3").position.y, -100.0, "a pillar less")
	var values: Dictionary = {
		"push_force": 2.0,
		"push_turn": 90.0,
		"wind": 1.5,
		"goal_radius": 0.4,
		"friction": 0.5,
		"time_limit": 3.0,
		"hold_time": 0.1,
	}
	RLAddon.ParameterStore.apply(ball.controller, 99, values)
	ball.controller.needs_reset = true
	await frames(2)
	check_equal([ball.force, ball.wind, ball.goal_radius], [2.0, 1.5, 0.4], "read")
	check_near(ball.turn, PI / 2.0, 1e-6, "turned")
	check_equal(ball.controller.reset_after, 180, "ticks")
	check_near(ball.physics_material_override.friction, 0.5, 1e-6, "friction")
	check_near(arena.goal.scale.x, 0.5, 1e-6, "the goal looks as large as it is")
	ball.position = arena.goal.position + MarbleBall.RADIUS * Vector3.UP
	await frames(4)
	check_equal(ball.score, 0, "it has not stayed long enough")
	await frames(6)
	check_equal(ball.score, 1, "it has stayed for 6 ticks")


func _on_changed(agent: Node) -> void:
	_changes.append(agent)


func _warnings_of(declared: RLParameterSet) -> PackedStringArray:
	var sync: Sync = Sync.new()
	sync.parameters = declared
	var warnings: PackedStringArray = sync._get_configuration_warnings()
	sync.free()
	return warnings


func _parameter(name: String, default: float, low: float, high: float) -> RLParameter:
	var made: RLParameter = RLParameter.new()
	made.name = name
	made.default = default
	made.low = low
	made.high = high
	return made


func _child(called: String) -> Node:
	var node: Node = Node.new()
	node.name = called
	add_child(node)
	return node
