class_name TagInput
extends RefCounted
## Keyboard and gamepad of a person who plays, as actions of an agent.

const KEYS: Dictionary[String, Array] = {
	"move_left": [KEY_A, KEY_LEFT],
	"move_right": [KEY_D, KEY_RIGHT],
	"move_up": [KEY_W, KEY_UP],
	"move_down": [KEY_S, KEY_DOWN],
	"jump": [KEY_SPACE],
	"next_camera": [KEY_TAB],
	"restart": [KEY_R],
	"show_rays": [KEY_V],
	"show_keys": [KEY_H],
	"leave": [KEY_ESCAPE],
}
const BUTTONS: Dictionary[String, JoyButton] = {
	"jump": JOY_BUTTON_A,
	"next_camera": JOY_BUTTON_RIGHT_SHOULDER,
	"restart": JOY_BUTTON_START,
	"leave": JOY_BUTTON_BACK,
}
const STICKS: Dictionary[String, Array] = {
	"move_left": [JOY_AXIS_LEFT_X, -1.0],
	"move_right": [JOY_AXIS_LEFT_X, 1.0],
	"move_up": [JOY_AXIS_LEFT_Y, -1.0],
	"move_down": [JOY_AXIS_LEFT_Y, 1.0],
}
const STICK_DEAD_ZONE: float = 0.2


## Add the actions to the input map, unless they are there.
static func install() -> void:
	for action: String in KEYS:
		if InputMap.has_action(action):
			continue
		InputMap.add_action(action, STICK_DEAD_ZONE)
		for key: Key in KEYS[action]:
			var event: InputEventKey = InputEventKey.new()
			event.physical_keycode = key
			InputMap.action_add_event(action, event)
		if BUTTONS.has(action):
			var press: InputEventJoypadButton = InputEventJoypadButton.new()
			press.button_index = BUTTONS[action]
			InputMap.action_add_event(action, press)
		if STICKS.has(action):
			var tilt: InputEventJoypadMotion = InputEventJoypadMotion.new()
			tilt.axis = STICKS[action][0]
			tilt.axis_value = STICKS[action][1]
			InputMap.action_add_event(action, tilt)


## What is pressed now, as an action: move_x, move_z, jump.
static func action() -> PackedFloat32Array:
	var move: Vector2 = Input.get_vector("move_left", "move_right", "move_up", "move_down")
	return PackedFloat32Array([move.x, move.y, 1.0 if Input.is_action_pressed("jump") else 0.0])
