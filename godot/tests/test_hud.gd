extends TagTest
## What the main scene tells whoever watches: time, players, score, verdict, keys, and sight.

const SCENE: PackedScene = preload("res://scenes/Main.tscn")

var _scene: Node
var _game: TagGame
var _view: TagView


func _exit_tree() -> void:
	TagLook.wanted = false
	Input.flush_buffered_events()


func test_without_a_display_the_view_is_disabled() -> void:
	_start([], false)
	var before: String = _label("Clock").text
	await frames(3)
	check(not _view.can_process(), "the view")
	check(not _view.hud.can_process(), "the HUD")
	check(not _view.camera.can_process(), "the camera")
	check_equal(_label("Clock").text, before, "the clock")


func test_time_title_players_and_roles_are_told() -> void:
	_start(["--seeker=bot:random", "--hider=bot:evader", "--play=nobody"])
	_game.title = "after 3 million steps"
	_game.arenas[0].game.tick = 540
	await frames(2)
	check_equal(_label("Clock").text, "1.0", "time left")
	check_equal(_label("Title").text, "after 3 million steps", "the title")
	check_equal([_card(0).role, _card(0).player], ["seeker", "bot:random"], "on the left")
	check_equal([_card(1).role, _card(1).player], ["hider", "bot:evader"], "on the right")
	_game.title = ""
	await frames(2)
	check(not _label("Title").visible, "a title that is empty")


func test_the_head_start_is_counted_down_before_the_clock_runs() -> void:
	_start(["--seeker=bot:chaser", "--hider=bot:evader", "--play=nobody", "--rules=hide"])
	_game.arenas[0].game.tick = 60
	await frames(2)
	check(_label("EyesClosed").visible, "closed eyes")
	check_equal(_label("EyesClosed").text, "eyes closed  1.0", "the countdown")
	check_equal(_label("Clock").text, "10.0", "time left in the head start")
	_game.arenas[0].game.tick = 660
	await frames(2)
	check(not _label("EyesClosed").visible, "closed eyes after the head start")
	check_equal(_label("Clock").text, "1.0", "time left")


func test_a_person_keeps_a_place_when_roles_change() -> void:
	_start(["--play=seeker", "--rules=transfer"])
	await frames(2)
	check_equal([_card(0).role, _card(0).player], ["seeker", "you"], "on the left")
	_game.arenas[0].game.seeker = 1
	await frames(2)
	check_equal([_card(0).role, _card(0).player], ["hider", "you"], "on the left")
	check_equal(_card(1).role, "seeker", "on the right")


func test_the_verdict_and_the_score() -> void:
	_start(["--seeker=bot:random", "--hider=bot:random", "--play=nobody"])
	var verdict: Control = _view.hud.get_node("Verdict")
	_game.arenas[0].game.tick = 540
	await frames(30)
	check(not verdict.visible, "a verdict before the end")
	await frames(40)
	check(verdict.visible, "a verdict")
	check_equal(_view.hud.verdict_text(), "Time is up: the hider wins", "the verdict")
	check_equal([_card(0).score, _card(1).score], [0, 1], "the score")
	check_equal(_label("Clock").text, "0.0", "time left")
	_game.restart()
	await frames(2)
	check(not verdict.visible, "a verdict in the next match")
	_game.arenas[0].game.agents[1].x = _game.arenas[0].game.agents[0].x
	_game.arenas[0].game.agents[1].z = _game.arenas[0].game.agents[0].z
	await frames(5)
	check_equal(_view.hud.verdict_text(), "Tagged!: the seeker wins", "the verdict")
	check_equal([_card(0).score, _card(1).score], [1, 1], "the score")


func test_a_draw_is_nobodys() -> void:
	_start(["--seeker=bot:random", "--hider=bot:random", "--play=nobody"])
	await frames(2)
	var game: TagMatch = _game.arenas[0].game
	game.end = TagMatch.End.TIMED_OUT
	var verdict: Control = _view.hud.get_node("Verdict")
	_view.hud.show_verdict(game)
	check_equal(_view.hud.verdict_text(), "Time is up: a draw", "the verdict")


func test_the_verdict_is_where_the_agents_are_not() -> void:
	_start(["--play=nobody"])
	await frames(2)
	var game: TagMatch = _game.arenas[0].game
	var verdict: Control = _view.hud.get_node("Verdict")
	game.end = TagMatch.End.TIMED_OUT
	for z: float in [-8.0, 8.0]:
		game.agents[0].z = z
		game.agents[1].z = 0.5 * z
		_view.hud.show_verdict(game)
		check_equal(verdict.anchor_top < 0.5, z > 0.0, "agents at %f, verdict above" % z)


func test_h_hides_the_keys_and_v_shows_the_rays() -> void:
	_start(["--play=nobody"])
	await frames(2)
	check(_label("Keys").visible, "the keys")
	check(not _game.arenas[0].look.rays[0].visible, "rays")
	await strike(KEY_H)
	check(not _label("Keys").visible, "the keys after H")
	await strike(KEY_V)
	check(_game.arenas[0].look.rays[0].visible, "rays after V")
	check(_game.arenas[0].look.rays[1].visible, "the other's rays after V")
	await strike(KEY_H)
	await strike(KEY_V)
	check(_label("Keys").visible, "the keys after H again")
	check(not _game.arenas[0].look.rays[0].visible, "rays after V again")


func test_the_sun_reaches_all_that_the_camera_sees() -> void:
	_start(["--play=nobody"])
	await frames(3)
	var sun: DirectionalLight3D = _view.get_node("Sun")
	check(sun.directional_shadow_max_distance >= _view.camera.far, "shadows as far as it sees")
	check(_view.camera.near > 20.0, "the near plane is at %f" % _view.camera.near)


func test_rays_end_where_the_eyes_met_something() -> void:
	var rules: TagRules = TagRules.read()
	var game: TagMatch = staged(rules, "playground", [0.0, 0.501, 8.0], [4.0, 0.501, 8.0])
	game.agents[0].forward_x = 0.96
	game.agents[0].forward_z = -0.28
	game.sense()
	var rays: TagRays = TagRays.new()
	rays.rules = rules
	var on_walls: int = 0
	var on_agent: int = 0
	for ray: int in rules.rays:
		var sight: TagSight = TagSight.of(game.observations[0], ray)
		var tip: Vector3 = rays.direction(game.agents[0], ray) * sight.distance * rules.eye_range
		tip += Vector3(0.0, 0.0, 8.0)
		if sight.kind == TagSight.Kind.AGENT:
			on_agent += 1
			check_near(tip.x, 3.5, 0.001, "where ray %d meets the agent" % ray)
		elif sight.kind == TagSight.Kind.SOLID and maxf(absf(tip.x), absf(tip.z)) > 9.999:
			on_walls += 1
	check(on_agent >= 3, "%d rays meet the agent" % on_agent)
	check(on_walls >= 10, "%d rays meet a wall" % on_walls)
	rays.free()


func test_the_first_ray_is_the_leftmost() -> void:
	var rules: TagRules = TagRules.read()
	var game: TagMatch = staged(rules, "empty", [0.0, 0.501, 0.0], [-3.0, 0.501, -4.0])
	game.agents[0].forward_x = 0.0
	game.agents[0].forward_z = -1.0
	game.sense()
	var middle: float = 0.5 * (rules.rays - 1)
	var seen: int = 0
	for ray: int in rules.rays:
		if TagSight.of(game.observations[0], ray).kind == TagSight.Kind.AGENT:
			seen += 1
			check(ray < middle, "who looks north sees what is west in ray %d" % ray)
	check(seen > 0, "nothing was seen")


## The main scene, as if started with these words after `--`.
func _start(words: PackedStringArray, is_seen: bool = true) -> void:
	TagLook.wanted = is_seen
	var nothing: Dictionary[String, String] = {}
	_scene = SCENE.instantiate()
	_game = _scene.get_node("Game")
	_view = _scene.get_node("View")
	_game.options = TagOptions.of(words, nothing)
	add_child(_scene)


func _label(name: String) -> Label:
	return _view.hud.get_node(name)


func _card(side: int) -> TagCard:
	return _view.hud.get_node("FirstCard" if side == 0 else "SecondCard")
