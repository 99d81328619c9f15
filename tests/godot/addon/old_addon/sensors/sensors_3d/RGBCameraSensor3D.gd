class_name RGBCameraSensor3D
extends Node3D
## What a small camera sees, as hex; without drawing there is no image, and this fails.

@onready var viewport = $SubViewport
@onready var camera = $SubViewport/Camera3D


func _physics_process(_delta):
	camera.global_transform = global_transform


func get_camera_shape():
	return [viewport.size.y, viewport.size.x, 3]


func get_camera_pixel_encoding():
	var image = viewport.get_texture().get_image()
	image.convert(Image.FORMAT_RGB8)
	return image.get_data().hex_encode()
