class_name TagMenu
extends CanvasLayer
## Whom you play and how to change that: by a click, or by the key that is written on the button.

const TEXT_SIZE: int = 17
## Below the card of the hider.
const TOP: float = 388.0
const WIDTH: float = 232.0
const EDGE: float = 20.0

## The game that is played.
@export var play: TagPlay

var _levels: Array[Button] = []


func _ready() -> void:
	if not TagLook.wanted or not play.levels:
		process_mode = PROCESS_MODE_DISABLED
		return
	var rows: VBoxContainer = VBoxContainer.new()
	rows.set_anchors_preset(Control.PRESET_TOP_RIGHT)
	rows.offset_left = -EDGE - WIDTH
	rows.offset_right = -EDGE
	rows.offset_top = TOP
	add_child(rows)
	for index: int in play.levels.names.size():
		var level: String = play.levels.names[index]
		var button: Button = _button("%d   %s" % [index + 1, level], rows)
		button.tooltip_text = play.levels.training_of(level)
		button.toggle_mode = true
		button.pressed.connect(_choose_level.bind(index))
		_levels.append(button)
	_button("X   swap roles", rows).pressed.connect(_swap_roles)
	_mark()


func _unhandled_key_input(event: InputEvent) -> void:
	var key: InputEventKey = event as InputEventKey
	if not key or not key.pressed or key.echo:
		return
	var first: Key = KEY_KP_1 if key.physical_keycode >= KEY_KP_1 else KEY_1
	var index: int = key.physical_keycode - first
	if index >= 0 and index < _levels.size():
		_choose_level(index)
	elif key.keycode == KEY_X:
		_swap_roles()


func _get_configuration_warnings() -> PackedStringArray:
	return [] if play else ["Set the game that is played."]


func _choose_level(index: int) -> void:
	play.choose(play.role(), play.levels.names[index])
	_mark()


func _swap_roles() -> void:
	play.choose("hider" if play.role() == "seeker" else "seeker", play.level())


## Show which level plays.
func _mark() -> void:
	for index: int in _levels.size():
		_levels[index].set_pressed_no_signal(play.levels.names[index] == play.level())


func _button(text: String, rows: Container) -> Button:
	var button: Button = Button.new()
	button.text = text
	button.alignment = HORIZONTAL_ALIGNMENT_LEFT
	button.focus_mode = Control.FOCUS_NONE
	button.add_theme_font_size_override("font_size", TEXT_SIZE)
	for state: String in ["normal", "hover", "pressed", "hover_pressed"]:
		var is_on: bool = "pressed" in state
		var box: StyleBoxFlat = StyleBoxFlat.new()
		box.bg_color = TagLook.INK if is_on else Color(TagLook.PALE, 0.88)
		box.set_corner_radius_all(10)
		box.set_content_margin_all(7.0)
		box.content_margin_left = EDGE
		button.add_theme_stylebox_override(state, box)
		var colour: String = "font_color" if state == "normal" else "font_%s_color" % state
		button.add_theme_color_override(colour, TagLook.PALE if is_on else TagLook.INK)
	rows.add_child(button)
	return button
