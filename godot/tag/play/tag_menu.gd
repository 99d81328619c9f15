class_name TagMenu
extends CanvasLayer
## Choose the opponent's level and your role: click a button, or press the key written on it.

## The game that is played.
@export var play: TagPlay

var _levels: Array[Button] = []


func _ready() -> void:
	if not TagLook.wanted or not play.levels:
		process_mode = PROCESS_MODE_DISABLED
		hide()
		return
	var template: Button = $Rows/Level
	for index: int in play.levels.names.size():
		var level: String = play.levels.names[index]
		var button: Button = template.duplicate()
		button.text = "%d   %s" % [index + 1, level]
		button.tooltip_text = play.levels.training_of(level)
		button.pressed.connect(_choose_level.bind(index))
		template.add_sibling(button)
		$Rows.move_child(button, index)
		_levels.append(button)
	template.free()
	$Rows/Swap.pressed.connect(_swap_roles)
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


func _choose_level(index: int) -> void:
	play.choose(play.role(), play.levels.names[index])
	_mark()


func _swap_roles() -> void:
	play.choose("hider" if play.role() == "seeker" else "seeker", play.level())


## Highlight the level that plays.
func _mark() -> void:
	for index: int in _levels.size():
		_levels[index].set_pressed_no_signal(play.levels.names[index] == play.level())
