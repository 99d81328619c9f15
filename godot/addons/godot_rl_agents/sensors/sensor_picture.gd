@tool
extends RefCounted
## What RGBCameraSensor2D and RGBCameraSensor3D share: the picture of their SubViewport as bytes,
## rows from the top, pixels from the left, then red, green, blue, and alpha if the background is
## transparent.

## The smallest side that the CNN of Stable-Baselines3 accepts.
const MIN_SIDE: int = 36
const HEADLESS: String = (
	"%s: a camera sensor needs a renderer. Start the game with a display instead of --headless, "
	+ "or through xvfb-run."
)

## The physics tick in which all viewports were last drawn by request.
static var _tick_drawn: int = -1
static var _has_complained: bool = false

var _sensor: Node
var _viewport: SubViewport
var _size: Vector2i
## The picture as it is sent, on the screen; null until it is shown.
var _displayed: ImageTexture
## Frames drawn before the viewport existed; until the next one it shows nothing.
var _frames_before: int = Engine.get_frames_drawn()


func _init(sensor: Node) -> void:
	_sensor = sensor
	_viewport = sensor.sub_viewport
	_viewport.size = sensor.render_image_resolution
	_size = sent_size(sensor)
	var shows_sent: bool = sensor.downscale_image and sensor.display_downscaled_image
	sensor.camera_texture.visible = not shows_sent
	sensor.camera_texture.scale = sensor.displayed_image_scale_factor
	sensor.processed_texture.visible = shows_sent
	sensor.processed_texture.scale = sensor.displayed_image_scale_factor


static func sent_size(sensor: Node) -> Vector2i:
	if sensor.downscale_image:
		return sensor.resized_image_resolution
	return sensor.render_image_resolution


static func warnings(sensor: Node) -> PackedStringArray:
	var found: PackedStringArray = []
	if not sensor.has_node(^"SubViewport/Camera") or not sensor.has_node(^"Control/CameraTexture"):
		found.append("Child nodes are missing: instance the sensor's scene instead of its script.")
	var size: Vector2i = sent_size(sensor)
	if mini(size.x, size.y) < MIN_SIDE:
		found.append(
			(
				"The picture is %d x %d; many trainers need at least %d per side."
				% [size.x, size.y, MIN_SIDE]
			)
		)
	return found


## Height, width, channels.
func shape() -> Array[int]:
	return [_size.y, _size.x, 4 if _viewport.transparent_bg else 3]


## The picture drawn last; empty without a renderer, with one error message.
func pixels() -> PackedByteArray:
	if DisplayServer.get_name() == "headless":
		if not _has_complained:
			push_error(HEADLESS % _sensor.name)
		_has_complained = true
		return []
	_draw_if_needed()
	var image: Image = _viewport.get_texture().get_image()
	image.convert(Image.FORMAT_RGBA8 if _viewport.transparent_bg else Image.FORMAT_RGB8)
	if image.get_size() != _size:
		image.resize(_size.x, _size.y, Image.INTERPOLATE_NEAREST)
	if _sensor.processed_texture.visible:
		_display(image)
	return image.get_data()


func _display(image: Image) -> void:
	if _displayed:
		_displayed.update(image)
	else:
		_displayed = ImageTexture.create_from_image(image)
		_sensor.processed_texture.texture = _displayed


## Draw with --disable-render-loop and before the first frame. Changes of this tick are not in the
## picture yet.
func _draw_if_needed() -> void:
	var shows_nothing: bool = Engine.get_frames_drawn() <= _frames_before
	if RenderingServer.render_loop_enabled and not shows_nothing:
		return
	if _tick_drawn != Engine.get_physics_frames():
		_tick_drawn = Engine.get_physics_frames()
		RenderingServer.force_draw(false)
