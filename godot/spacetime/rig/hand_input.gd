class_name HandInput
extends RefCounted
## Keyboard and mouse as the sticks and buttons of VR controllers: WASD or the arrow keys walk, the
## mouse (right button held) or J and L turn, Q and E snap, Space teleports.

const SNAP_RAD: float = PI / 6.0
## Turn of the stick for a mouse that moves this many pixels a tick.
const MOUSE_SCALE: float = 0.08

static var _is_snapping: bool = false
static var _is_teleporting: bool = false


static func stick() -> Vector2:
	return (
		Vector2(
			_axis([KEY_A, KEY_LEFT], [KEY_D, KEY_RIGHT]), _axis([KEY_S, KEY_DOWN], [KEY_W, KEY_UP])
		)
		. limit_length()
	)


static func turn() -> float:
	var keys: float = _axis([KEY_J], [KEY_L])
	if Input.is_mouse_button_pressed(MOUSE_BUTTON_RIGHT):
		keys += Input.get_last_mouse_velocity().x * MOUSE_SCALE / 60.0
	return clampf(keys, -1.0, 1.0)


## The snap turn that was asked for since the key was last up, in rad.
static func take_snap() -> float:
	var wish: float = _axis([KEY_E], [KEY_Q])
	var was: bool = _is_snapping
	_is_snapping = wish != 0.0
	return 0.0 if was else wish * SNAP_RAD


static func take_teleport() -> bool:
	var was: bool = _is_teleporting
	_is_teleporting = Input.is_physical_key_pressed(KEY_SPACE)
	return _is_teleporting and not was


static func _axis(less: Array[Key], more: Array[Key]) -> float:
	var value: float = 0.0
	for key: Key in less:
		value -= 1.0 if Input.is_physical_key_pressed(key) else 0.0
	for key: Key in more:
		value += 1.0 if Input.is_physical_key_pressed(key) else 0.0
	return clampf(value, -1.0, 1.0)
