extends TagTest
## RGBCameraSensor2D and RGBCameraSensor3D without a renderer; tests/godot sees their pictures.

const SCENES: PackedStringArray = [
	"res://addons/godot_rl_agents/sensors/sensors_2d/RGBCameraSensor2D.tscn",
	"res://addons/godot_rl_agents/sensors/sensors_3d/RGBCameraSensor3D.tscn",
]


func test_the_shape_is_height_width_channels() -> void:
	for path: String in SCENES:
		var sensor: Node = load(path).instantiate()
		sensor.render_image_resolution = Vector2(80, 60)
		add_child(sensor)
		check_equal(sensor.get_camera_shape(), [60, 80, 3] as Array[int], path)
		sensor.sub_viewport.transparent_bg = true
		check_equal(sensor.get_camera_shape(), [60, 80, 4] as Array[int], "with alpha")
		check_equal(sensor._get_configuration_warnings().size(), 0, "warnings")
		var small: Node = load(path).instantiate()
		small.downscale_image = true
		small.resized_image_resolution = Vector2(40, 20)
		add_child(small)
		check_equal(small.get_camera_shape(), [20, 40, 3] as Array[int], "resized")
		check_equal(small._get_configuration_warnings().size(), 1, "a picture that is too small")


func test_without_a_renderer_it_says_so_and_gives_nothing() -> void:
	allow_error("a camera sensor needs a renderer")
	for path: String in SCENES:
		var sensor: Node = load(path).instantiate()
		add_child(sensor)
		if DisplayServer.get_name() == "headless":
			check_equal(sensor.get_camera_pixels(), PackedByteArray(), "pixels")
			check_equal(sensor.get_camera_pixel_encoding(), "", "hex")


func test_the_script_alone_says_that_it_needs_its_scene() -> void:
	for sensor: Node in [RGBCameraSensor2D.new(), RGBCameraSensor3D.new()]:
		check_equal(sensor._get_configuration_warnings().size(), 1, "warnings")
		sensor.free()
