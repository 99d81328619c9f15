extends Node
## Plays a game that has no Sync node: presses the actions of its InputMap and clicks its buttons.
##
## Speaks version 0.7 of the protocol in JSON, as one agent: one action of two choices for each
## action of the InputMap, `click` for the visible buttons. A reset loads the scene again.

const FIRST: int = -(1 << 30)
const MOST_BUTTONS: int = 12
const OBSERVED: int = 8
## So many ticks after a reset the scene is loaded.
const RESET_TICKS: int = 3

var _socket: StreamPeerTCP = StreamPeerTCP.new()
var _repeat: int
var _scene: String
var _names: Array[StringName] = []
var _held: Dictionary[StringName, bool] = {}
var _clicked: String = ""
var _ticks_left: int = 30
var _answer: String = ""


func _init(port: int, repeat: int, scene: String) -> void:
	name = "HuntPlayer"
	process_mode = Node.PROCESS_MODE_ALWAYS
	process_physics_priority = FIRST
	_repeat = repeat
	_scene = scene
	_socket.connect_to_host("127.0.0.1", port)
	while _socket.get_status() == StreamPeerTCP.STATUS_CONNECTING:
		_socket.poll()
		OS.delay_usec(100)
	_socket.set_no_delay(true)


func _physics_process(_delta: float) -> void:
	_ticks_left -= 1
	if _ticks_left > 0:
		return
	if not _names:
		_find_actions()
	if _answer:
		_send(_report(_answer))
		_answer = ""
	while _socket.get_status() == StreamPeerTCP.STATUS_CONNECTED and not _answer:
		_execute(_receive())
	if not _answer:
		get_tree().quit()


func _find_actions() -> void:
	var has_controls: bool = not _buttons().is_empty()
	for action: StringName in InputMap.get_actions():
		var is_ui: bool = str(action).begins_with("ui_")
		var keeps: bool = not is_ui or (has_controls and action in [&"ui_accept", &"ui_cancel"])
		if keeps and InputMap.action_get_events(action):
			_names.append(action)
	if not _names:
		_names.assign([&"ui_left", &"ui_right", &"ui_up", &"ui_down", &"ui_accept"])


func _execute(message: Dictionary) -> void:
	match message.get("type"):
		"env_info":
			var choice: Dictionary = {"size": 2, "action_type": "discrete"}
			var does: Dictionary = {}
			for action: StringName in _names:
				does[str(action)] = choice
			does["click"] = {"size": MOST_BUTTONS + 1, "action_type": "discrete"}
			var sees: Dictionary = {"obs": {"size": [OBSERVED], "space": "box"}}
			_send(
				{
					"type": "env_info",
					"observation_space": [sees],
					"action_space": [does],
					"n_agents": 1,
					"agent_policy_names": ["player"],
				}
			)
		"reset":
			_reset(int(message.get("parameters", [{}])[0].get("seed", 0)))
		"action":
			_act(message["action"][0])
		"close":
			_socket.disconnect_from_host()


func _reset(game_seed: int) -> void:
	for action: StringName in _held.keys():
		_press(action, false)
	get_tree().paused = false
	Engine.time_scale = 1.0
	seed(game_seed)
	get_tree().change_scene_to_file(_scene)
	_answer = "reset"
	_ticks_left = RESET_TICKS


func _act(action: Dictionary) -> void:
	for each: StringName in _names:
		var wanted: bool = int(action.get(str(each), 0)) == 1
		if wanted != _held.get(each, false):
			_press(each, wanted)
	_clicked = ""
	var number: int = int(action.get("click", 0))
	var buttons: Array[BaseButton] = _buttons()
	if number > 0 and number <= buttons.size():
		_click(buttons[number - 1])
	_answer = "step"
	_ticks_left = _repeat


func _press(action: StringName, is_pressed: bool) -> void:
	_held[action] = is_pressed
	var event: InputEvent = InputEventAction.new()
	event.action = action
	for known: InputEvent in InputMap.action_get_events(action):
		if known is InputEventKey or known is InputEventMouseButton:
			event = known.duplicate()
			break
	event.pressed = is_pressed
	Input.parse_input_event(event)


func _click(button: BaseButton) -> void:
	_clicked = str(button.get("text")) if button.get("text") else str(button.name)
	for is_pressed: bool in [true, false]:
		var event: InputEventMouseButton = InputEventMouseButton.new()
		event.button_index = MOUSE_BUTTON_LEFT
		event.pressed = is_pressed
		event.position = button.get_global_rect().get_center()
		event.global_position = event.position
		button.get_viewport().push_input(event, true)


## Those that are visible and enabled, in the order of the tree.
func _buttons() -> Array[BaseButton]:
	var found: Array[BaseButton] = []
	for node: Node in get_tree().root.find_children("*", "BaseButton", true, false):
		var button: BaseButton = node
		if button.is_visible_in_tree() and not button.disabled and found.size() < MOST_BUTTONS:
			found.append(button)
	return found


func _report(kind: String) -> Dictionary:
	var info: Dictionary = {"clicked": _clicked} if _clicked else {}
	var result: Dictionary = {"type": kind, "obs": [{"obs": _observe()}], "info": [info]}
	if kind == "step":
		result.merge({"reward": [0.0], "done": [false]})
	return result


## The scene, whether it is paused, and what its controls show, as numbers within 0 and 1.
func _observe() -> Array:
	var scene: Node = get_tree().current_scene
	var texts: PackedStringArray = []
	for node: Node in get_tree().root.find_children("*", "Control", true, false):
		var control: Control = node
		if control.is_visible_in_tree() and control is BaseButton:
			texts.append(str(control.get_path()) + str(control.button_pressed))
	var seen: Array = [
		_share(scene.scene_file_path if scene else ""),
		float(get_tree().paused),
		texts.size() / (texts.size() + 10.0),
		_share("|".join(texts)),
	]
	while seen.size() < OBSERVED:
		seen.append(0.0)
	return seen


func _receive() -> Dictionary:
	var size: int = _read(4).decode_u32(0) if _wait(4) else 0
	var text: String = _read(size).get_string_from_utf8() if size and _wait(size) else ""
	var message: Variant = JSON.parse_string(text) if text else null
	if not message is Dictionary:
		_socket.disconnect_from_host()
		return {}
	return message


func _wait(size: int) -> bool:
	while _socket.get_available_bytes() < size:
		_socket.poll()
		if _socket.get_status() != StreamPeerTCP.STATUS_CONNECTED:
			return false
		OS.delay_usec(1)
	return true


func _read(size: int) -> PackedByteArray:
	return _socket.get_data(size)[1]


func _send(message: Dictionary) -> void:
	var frame: PackedByteArray = JSON.stringify(message).to_utf8_buffer()
	var head: PackedInt32Array = [frame.size()]
	_socket.put_data(head.to_byte_array() + frame)


static func _share(text: String) -> float:
	return (text.hash() & 0xFFFF) / 65535.0
