extends Control
## Draws the status of an agent: text, and a bar with its number for each value.

const WIDTH: float = 440.0
const MARGIN: float = 12.0
const LINE: float = 18.0
const FONT_SIZE: int = 13
const COLUMNS: int = 4
const BAR_WIDTH: float = 46.0
## The most values shown per observation.
const MOST: int = 96
## The viewport height it is designed for.
const SCREEN: float = 720.0
const PAPER: Color = Color(0.07, 0.08, 0.1, 0.82)
const INK: Color = Color(0.95, 0.95, 0.93)
const FAINT: Color = Color(0.62, 0.66, 0.7)
const TROUGH: Color = Color(1.0, 1.0, 1.0, 0.09)
const PLUS: Color = Color(0.36, 0.75, 0.55)
const MINUS: Color = Color(0.93, 0.55, 0.32)
const WRONG: Color = Color(1.0, 0.3, 0.3)

## Null while there is no agent.
var status: RLAddon.AgentStatus
## Its position in the list, as text.
var place: String = ""
## The keys, as text.
var hint: String = ""

var _font: Font = ThemeDB.fallback_font
var _y: float = 0.0
var _height: float = 0.0


func _init() -> void:
	mouse_filter = Control.MOUSE_FILTER_IGNORE


func _draw() -> void:
	var zoom: float = clampf(get_viewport_rect().size.y / SCREEN, 0.6, 4.0)
	draw_set_transform(Vector2.ONE * MARGIN * zoom, 0.0, Vector2.ONE * zoom)
	# The panel is as high as its content was in the last frame.
	draw_rect(Rect2(0.0, 0.0, WIDTH, _height), PAPER)
	_y = MARGIN
	_line(place, hint)
	if status:
		_draw_status()
	_y += MARGIN
	if _y != _height:
		_height = _y
		queue_redraw.call_deferred()


func _draw_status() -> void:
	_line("agent", status.name)
	_line("policy", status.policy)
	_line("played by", status.by)
	_line("model", status.about)
	_line("episode", status.episode)
	_line("reward", "%.3f" % status.reward)
	_line("return", status.returns)
	_line("value", status.value)
	_line("inference", status.thought)
	_draw_parts("sees", status.seen)
	_draw_parts("does", status.action)


func _draw_parts(title: String, parts: Dictionary) -> void:
	_y += 0.5 * LINE
	draw_rect(Rect2(MARGIN, _y, WIDTH - 2.0 * MARGIN, 1.0), TROUGH)
	_y += 0.3 * LINE
	_line(title, "" if parts else RLAddon.AgentStatus.NOTHING)
	for key: Variant in parts:
		_draw_part(str(key), parts[key])


func _draw_part(title: String, value: Variant) -> void:
	if value is String or value is PackedByteArray:
		var bytes: int = value.size() if value is PackedByteArray else value.length() / 2
		_line(title, "an image of %d bytes" % bytes)
	elif value is int:
		_line(title, "choice %d" % value)
	else:
		var numbers: PackedFloat32Array = RLAddon.Spaces.numbers_of(value)
		_line(title, "%d numbers" % numbers.size() if numbers.size() > 1 else "")
		_draw_numbers(numbers.slice(0, MOST))
		if numbers.size() > MOST:
			_line("", "and %d more" % (numbers.size() - MOST))


func _draw_numbers(numbers: PackedFloat32Array) -> void:
	var step: float = (WIDTH - 2.0 * MARGIN) / COLUMNS
	for index: int in numbers.size():
		var column: int = index % COLUMNS
		_draw_number(numbers[index], MARGIN + column * step)
		if column == COLUMNS - 1 or index == numbers.size() - 1:
			_y += LINE


## A bar from the middle, full at 1 and above, with the number beside it.
func _draw_number(number: float, x: float) -> void:
	var half: float = 0.5 * BAR_WIDTH
	draw_rect(Rect2(x, _y + 4.0, BAR_WIDTH, LINE - 8.0), TROUGH)
	if is_finite(number):
		var length: float = half * clampf(number, -1.0, 1.0)
		var bar: Rect2 = Rect2(x + half, _y + 4.0, length, LINE - 8.0).abs()
		draw_rect(bar, PLUS if number > 0.0 else MINUS)
	var text: String = "%.3f" % number if absf(number) < 100.0 else "%.0f" % number
	var color: Color = FAINT if number == 0.0 else INK
	_write(x + BAR_WIDTH + 5.0, text, color if is_finite(number) else WRONG)


func _line(title: String, text: String) -> void:
	_write(MARGIN, title, FAINT)
	_write(MARGIN + 96.0, text, INK)
	_y += LINE


func _write(x: float, text: String, color: Color) -> void:
	var at: Vector2 = Vector2(x, _y + 0.5 * (LINE + _font.get_ascent(FONT_SIZE)) - 1.5)
	var room: float = WIDTH - MARGIN - x
	draw_string(_font, at, text, HORIZONTAL_ALIGNMENT_LEFT, room, FONT_SIZE, color)
