extends TagTest
## How the arena looks follows from the match and its time: eyes, bearing, colours, effects.

const TICK_SEC: float = 1.0 / 60.0
const LONG_SEC: float = 2.0

var _rules: TagRules = tick_rules()
var _game: TagMatch
var _arena: TagArena
var _look: TagArenaLook


func _exit_tree() -> void:
	TagLook.wanted = false


func test_without_a_screen_nothing_is_built_to_be_seen() -> void:
	_build("colonnade", [0.0, 0.501, 0.0], [4.0, 0.501, 0.0], false)
	check(_arena.look == null, "a look")
	var seen: Array[Node] = _arena.find_children("*", "VisualInstance3D", true, false)
	check_equal(seen.size(), 0, "things to see")
	check_equal(_arena.find_children("*", "CollisionShape3D", true, false).size(), 23, "bodies")


func test_every_box_is_drawn_where_it_stands_in_two_tones() -> void:
	_build("playground", [0.0, 0.501, 8.0], [4.0, 0.501, 8.0])
	var tones: Dictionary[Color, int] = {}
	var low: Color = _look.room.low_material.albedo_color
	var tall: Color = _look.room.tall_material.albedo_color
	for index: int in _game.layouts[0].count:
		var drawn: MeshInstance3D = _look.room.get_node("Box%d" % index)
		var space: AABB = drawn.mesh.get_aabb()
		space.position += drawn.position
		var extent: Vector3 = _game.layouts[0].extent(index)
		var centre: Vector3 = _game.layouts[0].centre(index)
		check((space.end - (centre + 0.5 * extent)).length() < 0.001, "box %d ends" % index)
		check_near(space.size.x, extent.x, 0.001, "width of box %d" % index)
		check_near(space.size.z, extent.z, 0.001, "depth of box %d" % index)
		var colour: Color = (drawn.material_override as StandardMaterial3D).albedo_color
		check_equal(colour, low if extent.y < 1.5 else tall, "its tone")
		tones[colour] = index
	check_equal(tones.size(), 2, "tones")


func test_a_box_that_hides_an_agent_grows_thin() -> void:
	_build("playground", [-5.0, 0.501, 1.5], [9.0, 0.501, 9.0])
	var box: MeshInstance3D = _look.room.get_node("Box3")
	var surface: StandardMaterial3D = box.material_override
	var eye: Vector3 = Vector3(-5.0, 30.0, 20.0)
	var behind: PackedVector3Array = [Vector3(-5.0, 0.5, 1.6)]
	var beside: PackedVector3Array = [Vector3(-3.0, 0.5, 1.6)]
	_look.room.reveal(beside, eye, TICK_SEC)
	check_equal(surface.albedo_color.a, 1.0, "beside it")
	_look.room.reveal(behind, eye, TICK_SEC)
	check(surface.albedo_color.a < 1.0, "behind it")
	_look.room.reveal(behind, eye, LONG_SEC)
	check_near(surface.albedo_color.a, _look.room.hiding_opacity, 0.001, "long behind it")
	_look.room.reveal(beside, eye, LONG_SEC)
	check_equal(surface.albedo_color.a, 1.0, "beside it again")
	check_equal(surface.transparency, BaseMaterial3D.TRANSPARENCY_DISABLED, "solid again")


func test_another_layout_is_another_room() -> void:
	var layouts: Array[TagLayout] = []
	for name: String in ["empty", "central_cross"]:
		layouts.append(TagLayout.read(name, _rules))
	_hold(TagMatch.new(_rules, layouts))
	for index: int in [1, 0, 1]:
		_game.layout_index = index
		_wait(TICK_SEC)
		check_equal(_look.room.has_node("Box0"), index == 1, "boxes in layout %d" % index)


func test_blocks_face_outwards() -> void:
	var extent: Vector3 = Vector3(1.0, 2.0, 3.0)
	var mesh: TagRoundedBox = TagRoundedBox.new()
	mesh.size = extent
	mesh.radius = 0.2
	var arrays: Array = mesh.surface_get_arrays(0)
	var places: PackedVector3Array = arrays[Mesh.ARRAY_VERTEX]
	var normals: PackedVector3Array = arrays[Mesh.ARRAY_NORMAL]
	var order: PackedInt32Array = arrays[Mesh.ARRAY_INDEX]
	check(order.size() > 100, "%d corners" % order.size())
	check_near((mesh.get_aabb().size - extent).length(), 0.0, 0.001, "extent")
	for first: int in range(0, order.size(), 3):
		var one: Vector3 = places[order[first]]
		var two: Vector3 = places[order[first + 1]]
		var three: Vector3 = places[order[first + 2]]
		var front: Vector3 = (three - one).cross(two - one)
		check(front.dot(normals[order[first]]) >= 0.0, "a side at %s is seen from within" % one)
		check(one.dot(normals[order[first]]) > 0.0, "light falls on %s from within" % one)


func test_role_colours_change_places_with_a_flash() -> void:
	_build("empty", [0.0, 0.501, 0.0], [5.0, 0.501, 0.0])
	for index: int in 2:
		var colour: Color = TagLook.role_color("seeker" if index == 0 else "hider")
		check_equal(_look.agents[index].skin.albedo_color, colour, "colour of agent %d" % index)
	_game.seeker = 1
	_wait(TICK_SEC)
	check(_paleness(0) > 0.4 and _paleness(1) > 0.4, "a flash of %f" % _paleness(0))
	check(_look.burst.visible, "a burst")
	_wait(LONG_SEC)
	check_near(_paleness(0), 0.0, 0.01, "paleness after the flash")
	check_near(_paleness(1), 0.0, 0.01, "paleness after the flash")
	check(not _look.burst.visible, "the burst is over")


func test_immunity_pulses() -> void:
	_build("empty", [0.0, 0.501, 0.0], [5.0, 0.501, 0.0])
	var palest: float = 0.0
	var darkest: float = 1.0
	for left: int in 30:
		_game.agents[1].immune_ticks = 30 - left
		_wait(TICK_SEC)
		palest = maxf(palest, _paleness(1))
		darkest = minf(darkest, _paleness(1))
	check(palest > 0.5 and darkest < 0.1, "from %f to %f" % [darkest, palest])
	check_equal(_paleness(0), 0.0, "the other's paleness")


func test_pupils_turn_to_an_opponent_that_is_seen_and_else_ahead() -> void:
	_build("empty", [0.0, 0.501, 0.0], [4.0, 0.501, 3.0])
	for sees: bool in [true, false]:
		_game.observations[0][TagObservation.opponent_visible] = 1.0 if sees else 0.0
		_wait(LONG_SEC)
		for pupil: Node3D in _look.agents[0].pupils:
			var looks: Vector3 = _look.agents[0].cube.basis * pupil.position
			var wanted: float = atan2(4.0, 3.0) if sees else 0.0
			check_near(atan2(looks.x, looks.z), wanted, 0.05, "gaze, seen: %s" % sees)


func test_the_cube_turns_to_where_the_agent_faces() -> void:
	_build("empty", [0.0, 0.501, 0.0], [4.0, 0.501, 3.0])
	_game.agents[0].forward_x = -0.6
	_game.agents[0].forward_z = 0.8
	_wait(TICK_SEC)
	var ahead: Vector3 = _look.agents[0].cube.basis.z.normalized()
	check((ahead - Vector3(-0.6, 0.0, 0.8)).length() < 0.001, "it faces %s" % ahead)


func test_eyes_blink_now_and_then_and_not_together() -> void:
	_build("empty", [0.0, 0.501, 0.0], [5.0, 0.501, 0.0])
	var shut: Array[int] = [0, 0]
	for tick: int in _look.agents[0].blink_interval:
		_game.tick = tick
		_wait(TICK_SEC)
		var both: bool = true
		for index: int in 2:
			var is_shut: bool = _look.agents[index].eyes[0].scale.y < 0.5
			shut[index] += int(is_shut)
			both = both and is_shut
		check(not both, "both blink at tick %d" % tick)
	check(shut[0] >= 3 and shut[0] <= 12, "shut for %d ticks" % shut[0])
	check_equal(shut[1], shut[0], "the other's")
	_game.end = TagMatch.End.TIMED_OUT
	_game.winner = 0
	_game.tick = 2 * _look.agents[0].blink_interval + 4
	_wait(TICK_SEC)
	check_equal(_look.agents[0].eyes[0].scale.y, 1.0, "the winner's eyes at the end")
	check(_look.agents[1].eyes[0].scale.y < 0.6, "the loser's eyes at the end")


func test_it_stretches_in_a_jump_and_is_squashed_on_landing() -> void:
	_build("empty", [0.0, 0.501, 0.0], [9.0, 0.501, 9.0])
	make_immune(_game)
	var tallest: float = 1.0
	var flattest: float = 1.0
	for tick: int in 150:
		_game.decide(act(0.0, 0.0, 1.0 if tick == 0 else 0.0), act())
		_wait(TICK_SEC)
		var height: float = _look.agents[0].cube.basis.y.length()
		tallest = maxf(tallest, height)
		if tick > 30:
			flattest = minf(flattest, height)
	check(tallest > 1.08 and tallest < 1.3, "stretched to %f" % tallest)
	check(flattest < 0.92 and flattest > 0.6, "squashed to %f" % flattest)
	check_near(_look.agents[0].cube.basis.y.length(), 1.0, 0.01, "afterwards")


func test_it_leans_into_its_acceleration() -> void:
	_build("empty", [0.0, 0.501, 0.0], [9.0, 0.501, 9.0])
	for _tick: int in 8:
		_game.decide(act(1.0, 0.0), act())
		_wait(TICK_SEC)
	var top: Vector3 = _look.agents[0].cube.basis.y
	check(top.x > 0.1 and absf(top.z) < 0.01, "its top is at %s" % top)


func test_a_trail_follows_and_fades_and_ends_with_the_episode() -> void:
	_build("empty", [0.0, 0.501, 0.0], [9.0, 0.501, 9.0])
	for _tick: int in 60:
		_game.decide(act(1.0, 0.0), act())
		_wait(TICK_SEC)
	var trail: PackedVector3Array = _look.trails[0].places
	var length: float = trail[-1].x - trail[0].x
	check_near(trail[-1].x, _game.agents[0].x, 0.001, "its beginning")
	check(length > 1.5 and length < 8.0 * 0.55, "it is %f m long" % length)
	_wait(LONG_SEC)
	check_equal(_look.trails[0].places.size(), 1, "points of an agent that stands")
	_game.begin(1)
	_wait(TICK_SEC)
	check_equal(_look.trails[0].places.size(), 1, "points in a new episode")


func test_a_tag_bursts_once_between_the_two() -> void:
	_rules = tick_rules("seek")
	_build("empty", [0.0, 0.501, 0.0], [1.3, 0.501, 0.0])
	check(not _look.burst.visible, "before the tag")
	for _tick: int in 20:
		if _game.end == TagMatch.End.GOING_ON:
			_game.decide(act(1.0, 0.0), act())
		_wait(TICK_SEC)
	check_equal(_game.end, TagMatch.End.TAGGED, "a tag")
	check(_look.burst.visible, "a burst")
	var at: Vector3 = _look.burst.position
	check(at.x > _game.agents[0].x and at.x < _game.agents[1].x, "it is at %s" % at)
	_wait(LONG_SEC)
	_wait(TICK_SEC)
	check(not _look.burst.visible, "it is over")


func test_going_back_in_time_starts_over() -> void:
	_build("empty", [0.0, 0.501, 0.0], [9.0, 0.501, 9.0])
	for _tick: int in 30:
		_game.decide(act(1.0, 0.0), act())
		_wait(TICK_SEC)
	check(_look.trails[0].places.size() > 10, "a trail")
	_game.tick = 3
	_wait(TICK_SEC)
	check_equal(_look.trails[0].places.size(), 1, "points of the trail")


func test_the_same_match_looks_the_same() -> void:
	var seen: Array[Array] = []
	for _again: int in 2:
		_build("playground", [0.0, 0.501, 8.0], [4.0, 0.501, 8.0])
		var poses: Array = []
		for tick: int in 90:
			_game.decide(
				act(sin(0.2 * tick), cos(0.1 * tick), float(tick % 40 == 0)), act(-1.0, 0.3)
			)
			_wait(TICK_SEC)
			for agent: TagAgentLook in _look.agents:
				poses.append(
					[agent.cube.transform, agent.pupils[0].position, agent.skin.albedo_color]
				)
		seen.append(poses)
	check_equal(seen[0], seen[1], "poses")


func test_held_time_holds_the_look() -> void:
	_build("empty", [0.0, 0.501, 0.0], [9.0, 0.501, 9.0])
	for _tick: int in 8:
		_game.decide(act(1.0, 0.0), act())
		_wait(TICK_SEC)
	_look.time_scale = 0.0
	var before: Basis = _look.agents[0].cube.basis
	var places: PackedVector3Array = _look.trails[0].places.duplicate()
	_look._process(0.5)
	check(before.is_equal_approx(_look.agents[0].cube.basis), "bearing")
	check_equal(_look.trails[0].places.slice(0, 5), places.slice(0, 5), "trail")


## An arena with a match set up by hand, and its look.
func _build(
	layout: String, first: PackedFloat64Array, second: PackedFloat64Array, is_seen: bool = true
) -> void:
	_hold(staged(_rules, layout, first, second), is_seen)


func _hold(game: TagMatch, is_seen: bool = true) -> void:
	TagLook.wanted = is_seen
	_game = game
	_game.sense()
	_arena = TagArena.create()
	add_child(_arena)
	_arena.setup(_game)
	_look = _arena.look
	if _look:
		_look.set_process(false)
		_wait(TICK_SEC)


func _wait(seconds: float) -> void:
	_arena.follow()
	_look.advance(seconds)


## How far an agent's colour is from its role's to the palest.
func _paleness(agent: int) -> float:
	var own: Color = TagLook.role_color(_game.role_of(agent))
	return (_look.agents[agent].skin.albedo_color.g - own.g) / (TagLook.pale().g - own.g)
