extends TagTest
## A person at the keys: what is mapped, and that real key events move what they should.

const SCENE: PackedScene = preload("res://scenes/Main.tscn")
const EXPECTED_KEYS: Dictionary[Key, String] = {
	KEY_W: "move_up",
	KEY_A: "move_left",
	KEY_S: "move_down",
	KEY_D: "move_right",
	KEY_UP: "move_up",
	KEY_LEFT: "move_left",
	KEY_DOWN: "move_down",
	KEY_RIGHT: "move_right",
	KEY_SPACE: "jump",
	KEY_TAB: "next_camera",
	KEY_R: "restart",
	KEY_V: "show_rays",
	KEY_H: "show_keys",
	KEY_ESCAPE: "leave",
}
const EXPECTED_BUTTONS: Dictionary[JoyButton, String] = {
	JOY_BUTTON_A: "jump",
	JOY_BUTTON_RIGHT_SHOULDER: "next_camera",
	JOY_BUTTON_START: "restart",
	JOY_BUTTON_BACK: "leave",
}
## Ticks in which a person can be seen to have moved.
const HELD_TICKS: int = 30

var _scene: Node
var _game: TagGame
var _down: Array[Key] = []


func _exit_tree() -> void:
	for key: Key in _down.duplicate():
		_release(key)
	_tilt(JOY_AXIS_LEFT_X, 0.0)
	_press_button(JOY_BUTTON_A, false)
	TagLook.wanted = false
	Input.flush_buffered_events()


func test_keys_are_mapped() -> void:
	TagInput.install()
	for key: Key in EXPECTED_KEYS:
		var event: InputEvent = _key_event(key, true)
		for action: String in TagInput.KEYS:
			var expected: bool = EXPECTED_KEYS[key] == action
			var name: String = OS.get_keycode_string(key)
			check_equal(event.is_action(action), expected, "%s as %s" % [name, action])


func test_the_gamepad_is_mapped() -> void:
	TagInput.install()
	for button: JoyButton in EXPECTED_BUTTONS:
		var event: InputEventJoypadButton = InputEventJoypadButton.new()
		event.button_index = button
		for action: String in TagInput.KEYS:
			var expected: bool = EXPECTED_BUTTONS[button] == action
			check_equal(event.is_action(action), expected, "button %d as %s" % [button, action])
	for axis: JoyAxis in [JOY_AXIS_LEFT_X, JOY_AXIS_LEFT_Y] as Array[JoyAxis]:
		var tilt: InputEventJoypadMotion = InputEventJoypadMotion.new()
		tilt.axis = axis
		for value: float in [-1.0, 1.0]:
			tilt.axis_value = value
			var ways: Array = ["move_left", "move_right"]
			if axis == JOY_AXIS_LEFT_Y:
				ways = ["move_up", "move_down"]
			var pressed: String = ways[0 if value < 0.0 else 1]
			for action: String in TagInput.KEYS:
				var expected: bool = action == pressed
				check_equal(tilt.is_action_pressed(action), expected, "stick as " + action)


func test_installing_again_does_no_harm() -> void:
	TagInput.install()
	var before: int = InputMap.action_get_events("jump").size()
	TagInput.install()
	check_equal(InputMap.action_get_events("jump").size(), before, "events of jump")


func test_the_keys_move_the_seeker() -> void:
	var ways: Dictionary[Key, Vector3] = {
		KEY_W: Vector3.FORWARD, KEY_A: Vector3.LEFT, KEY_S: Vector3.BACK, KEY_D: Vector3.RIGHT
	}
	_start(["--play=seeker", "--layout=empty", "--hider=bot:random"])
	for key: Key in ways:
		_put_apart()
		await _hold(key)
		var moved: Vector3 = _place_of(0) - Vector3(0.0, 0.501, 0.0)
		var name: String = OS.get_keycode_string(key)
		check(moved.dot(ways[key]) > 1.0, "%s moved by %s" % [name, moved])
		check(moved.cross(ways[key]).length() < 0.001, "%s moved aside by %s" % [name, moved])


func test_two_keys_run_diagonally() -> void:
	_start(["--play=seeker", "--layout=empty", "--hider=bot:random"])
	_put_apart()
	_press(KEY_D)
	await _hold(KEY_S)
	var moved: Vector3 = _place_of(0)
	check(moved.x > 0.5, "x is %f" % moved.x)
	check_near(moved.z, moved.x, 0.001, "z")


func test_without_keys_the_person_stands() -> void:
	_start(["--play=seeker", "--layout=empty", "--hider=bot:random"])
	_put_apart()
	await frames(HELD_TICKS)
	check_equal(_place_of(0), Vector3(0.0, 0.501, 0.0), "place")


func test_space_jumps() -> void:
	_start(["--play=seeker", "--layout=empty", "--hider=bot:random"])
	_put_apart()
	_press(KEY_SPACE)
	await frames(10)
	check(_place_of(0).y > 1.0, "height %f" % _place_of(0).y)


func test_a_person_can_be_the_hider() -> void:
	_start(["--play=hider", "--layout=empty"])
	_put_apart()
	await _hold(KEY_W)
	var agents: Array[TagAgent] = _game.arenas[0].game.agents
	check(agents[1].z < 7.0 and absf(agents[1].x - 8.0) < 0.001, "at %s" % _place_of(1))
	check(Vector2(agents[0].x, agents[0].z).length() > 0.1, "the bot plays the seeker")


func test_only_the_first_arena_has_a_person() -> void:
	_start(["--play=seeker", "--layout=empty", "--arenas=2", "--seed=4"])
	await frames(60)
	var still: TagAgent = _game.arenas[0].game.agents[0]
	var bot: TagAgent = _game.arenas[1].game.agents[0]
	check_equal(Vector2(still.velocity_x, still.velocity_z), Vector2.ZERO, "the person's speed")
	check(Vector2(bot.velocity_x, bot.velocity_z) != Vector2.ZERO, "the bot runs")


func test_the_gamepad_moves_and_jumps() -> void:
	_start(["--play=seeker", "--layout=empty", "--hider=bot:random"])
	_put_apart()
	_tilt(JOY_AXIS_LEFT_X, 0.6)
	await frames(HELD_TICKS)
	var half_speed: float = _game.arenas[0].game.agents[0].velocity_x
	check(half_speed > 2.0 and half_speed < 6.0, "half a tilt ran at %f m/s" % half_speed)
	_press_button(JOY_BUTTON_A, true)
	await frames(10)
	check(_place_of(0).y > 1.0, "height %f" % _place_of(0).y)


func test_tab_cycles_the_camera() -> void:
	TagLook.wanted = true
	_start(["--layout=empty"])
	var camera: TagCamera = _scene.get_node("View/Camera")
	for target: TagCamera.Target in [
		TagCamera.Target.FIRST_AGENT, TagCamera.Target.SECOND_AGENT, TagCamera.Target.ARENA
	]:
		_press(KEY_TAB)
		await frames(2)
		_release(KEY_TAB)
		await frames(120)
		check_equal(camera.target, target, "target")
		var focus: Vector3 = Vector3.ZERO
		if target != TagCamera.Target.ARENA:
			focus = _game.arenas[0].bodies[target - 1].global_position
		var looks: Vector3 = -camera.global_basis.z
		var direction: Vector3 = camera.global_position.direction_to(focus)
		check(looks.dot(direction) > 0.99, "it looks along %s" % looks)


func test_r_restarts() -> void:
	_start(["--layout=empty", "--arenas=2"])
	await frames(20)
	_press(KEY_R)
	await frames(4)
	for arena: TagArena in _game.arenas:
		check_equal(arena.game.episode, 1, "episode")
		check(arena.game.tick < 5, "tick %d" % arena.game.tick)
	await frames(20)
	check_equal(_game.arenas[0].game.episode, 1, "a key that is held restarts once")


## The main scene, as if started with these words after `--`.
func _start(words: PackedStringArray) -> void:
	var nothing: Dictionary[String, String] = {}
	_scene = SCENE.instantiate()
	_game = _scene.get_node("Game")
	_game.options = TagOptions.of(words, nothing)
	add_child(_scene)


## A fresh episode, the first agent in the middle and the second far away.
func _put_apart() -> void:
	_game.restart()
	place(_game.arenas[0].game.agents[0], [0.0, 0.501, 0.0], _game.rules)
	place(_game.arenas[0].game.agents[1], [8.0, 0.501, 8.0], _game.rules)


func _place_of(agent: int) -> Vector3:
	return _game.arenas[0].bodies[agent].position


func _hold(key: Key) -> void:
	_press(key)
	await frames(HELD_TICKS)
	_release(key)
	await frames(1)


func _press(key: Key) -> void:
	_down.append(key)
	Input.parse_input_event(_key_event(key, true))


func _release(key: Key) -> void:
	_down.erase(key)
	Input.parse_input_event(_key_event(key, false))


func _key_event(key: Key, pressed: bool) -> InputEventKey:
	var event: InputEventKey = InputEventKey.new()
	event.physical_keycode = key
	event.keycode = key
	event.pressed = pressed
	return event


func _tilt(axis: JoyAxis, value: float) -> void:
	var event: InputEventJoypadMotion = InputEventJoypadMotion.new()
	event.axis = axis
	event.axis_value = value
	Input.parse_input_event(event)


func _press_button(button: JoyButton, pressed: bool) -> void:
	var event: InputEventJoypadButton = InputEventJoypadButton.new()
	event.button_index = button
	event.pressed = pressed
	Input.parse_input_event(event)
