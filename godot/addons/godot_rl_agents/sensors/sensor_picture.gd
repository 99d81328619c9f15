@tool
extends RefCounted
## What a SubViewport shows, as bytes: the rows from the top, in each the pixels from the left, of
## each red, green and blue, and alpha if the background is transparent.

const HEADLESS: String = (
	"%s: there are no pictures without a renderer. Start the game with a screen instead of "
	+ "--headless; without one, through xvfb-run."
)

## The physics tick in which all viewports were last drawn by request.
static var _tick_drawn: int = -1
static var _has_complained: bool = false

var _viewport: SubViewport
var _size: Vector2i
## Frames that had been drawn when the viewport came; until then it shows nothing.
var _frames_before: int = Engine.get_frames_drawn()


func _init(viewport: SubViewport, size: Vector2i) -> void:
	_viewport = viewport
	_size = size


## Height, width, channels.
func shape() -> Array[int]:
	return [_size.y, _size.x, 4 if _viewport.transparent_bg else 3]


## The picture that was drawn last, in this size. Without a renderer null, and one message.
func take() -> Image:
	if DisplayServer.get_name() == "headless":
		if not _has_complained:
			push_error(HEADLESS % _viewport.get_parent().name)
		_has_complained = true
		return null
	_draw_if_nobody_does()
	var image: Image = _viewport.get_texture().get_image()
	image.convert(Image.FORMAT_RGBA8 if _viewport.transparent_bg else Image.FORMAT_RGB8)
	if image.get_size() != _size:
		image.resize(_size.x, _size.y, Image.INTERPOLATE_NEAREST)
	return image


## With --disable-render-loop, and before the first frame. What was set up in this very tick is not
## in the picture yet.
func _draw_if_nobody_does() -> void:
	var shows_nothing: bool = Engine.get_frames_drawn() <= _frames_before
	if RenderingServer.render_loop_enabled and not shows_nothing:
		return
	if _tick_drawn != Engine.get_physics_frames():
		_tick_drawn = Engine.get_physics_frames()
		RenderingServer.force_draw(false)
