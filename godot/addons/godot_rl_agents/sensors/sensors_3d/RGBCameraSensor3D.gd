@tool
class_name RGBCameraSensor3D
extends Node3D
## The pixels a camera at the sensor's position sees. Use an instance of RGBCameraSensor3D.tscn.
##
## In `get_obs`, return `get_camera_pixels()` under a key that contains "2d"; in `get_obs_space`,
## return its size `get_camera_shape()` and the space "box". The picture is the last one drawn.

@export var render_image_resolution: Vector2i = Vector2i(36, 36)
## Scale of the preview on the screen; 0 hides it. The observation does not change.
@export var displayed_image_scale_factor: Vector2 = Vector2(8, 8)

@export_group("Downscale image options")
## Send the picture in `resized_image_resolution`.
@export var downscale_image: bool = false
## Show the picture as it is sent, not as it is drawn.
@export var display_downscaled_image: bool = true
@export var resized_image_resolution: Vector2i = Vector2i(36, 36)

var _picture: RLAddon.SensorPicture

@onready var sub_viewport: SubViewport = get_node_or_null(^"SubViewport")
@onready var camera: Camera3D = get_node_or_null(^"SubViewport/Camera")
@onready var camera_texture: Sprite2D = get_node_or_null(^"Control/CameraTexture")
@onready var processed_texture: Sprite2D = get_node_or_null(^"Control/ProcessedTexture")


func _ready() -> void:
	if Engine.is_editor_hint():
		return
	_picture = RLAddon.SensorPicture.new(self)


func _get_configuration_warnings() -> PackedStringArray:
	return RLAddon.SensorPicture.warnings(self)


## The pixels: rows from the top, then from the left, then channels. Empty without a renderer.
func get_camera_pixels() -> PackedByteArray:
	return _picture.pixels()


## The pixels as lowercase hex.
func get_camera_pixel_encoding() -> String:
	return get_camera_pixels().hex_encode()


## Height, width and channels of the pixels.
func get_camera_shape() -> Array[int]:
	return _picture.shape()
