@tool
class_name RGBCameraSensor3D
extends Node3D
## What a camera at the sensor's place sees, as pixels; an instance of RGBCameraSensor3D.tscn.
##
## In `get_obs` give `get_camera_pixels()` under a key that contains "2d", in `get_obs_space` its
## size `get_camera_shape()` and the space "box". The picture is the one that was drawn last.

## Side of the smallest picture that Stable-Baselines3's picture network takes.
const SMALLEST: int = 36

@export var render_image_resolution: Vector2i = Vector2i(36, 36)
## How large the picture is shown on the screen; what is sent stays the same. 0 does not show it.
@export var displayed_image_scale_factor: Vector2 = Vector2(8, 8)

@export_group("Downscale image options")
## Send the picture in `resized_image_resolution`.
@export var downscale_image: bool = false
## Show the picture as it is sent, not as it is drawn.
@export var display_downscaled_image: bool = true
@export var resized_image_resolution: Vector2i = Vector2i(36, 36)

var _picture: RLAddon.SensorPicture
## The picture as it is sent, on the screen.
var _displayed: ImageTexture

@onready var sub_viewport: SubViewport = get_node_or_null(^"SubViewport")
@onready var camera: Camera3D = get_node_or_null(^"SubViewport/Camera")
@onready var camera_texture: Sprite2D = get_node_or_null(^"Control/CameraTexture")
@onready var processed_texture: Sprite2D = get_node_or_null(^"Control/ProcessedTexture")


func _ready() -> void:
	if Engine.is_editor_hint():
		return
	sub_viewport.size = render_image_resolution
	_picture = RLAddon.SensorPicture.new(sub_viewport, _sent_size())
	var shows_sent: bool = downscale_image and display_downscaled_image
	camera_texture.visible = not shows_sent
	camera_texture.scale = displayed_image_scale_factor
	processed_texture.visible = shows_sent
	processed_texture.scale = displayed_image_scale_factor


func _get_configuration_warnings() -> PackedStringArray:
	var warnings: PackedStringArray = []
	if not has_node(^"SubViewport/Camera") or not has_node(^"Control/CameraTexture"):
		warnings.append("Its children are missing: use an instance of the scene of the same name.")
	var size: Vector2i = _sent_size()
	if mini(size.x, size.y) < SMALLEST:
		var told: Array[int] = [size.x, size.y, SMALLEST]
		warnings.append("The picture is %d x %d; many trainers need at least %d a side." % told)
	return warnings


## The pixels: rows from the top, then from the left, then channels. Empty without a renderer.
func get_camera_pixels() -> PackedByteArray:
	var image: Image = _picture.take()
	if not image:
		return []
	if processed_texture.visible:
		_display(image)
	return image.get_data()


## The pixels as lowercase hex.
func get_camera_pixel_encoding() -> String:
	return get_camera_pixels().hex_encode()


## Height, width and channels of the pixels.
func get_camera_shape() -> Array[int]:
	return _picture.shape()


func _sent_size() -> Vector2i:
	return resized_image_resolution if downscale_image else render_image_resolution


func _display(image: Image) -> void:
	if _displayed:
		_displayed.update(image)
	else:
		_displayed = ImageTexture.create_from_image(image)
		processed_texture.texture = _displayed
