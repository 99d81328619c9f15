class_name FeatureView
extends Node3D
## What a person sees of a FeatureScene: the first island from behind and above, its figures, and
## the keys. Without a window it removes itself.

const FOLLOW_PER_SEC: float = 6.0

## From what is followed to the camera.
@export var offset: Vector3 = Vector3(0.0, 6.0, 12.0)
## From what is followed to what the camera looks at.
@export var look_at_offset: Vector3 = Vector3.ZERO
@export_multiline var keys: String = ""

var _island: FeatureIsland

@onready var _scene: FeatureScene = get_parent()
@onready var _camera: Camera3D = $Camera3D
@onready var _label: Label = $Layer/Panel/Numbers


func _ready() -> void:
	if DisplayServer.get_name() == "headless":
		queue_free()
		return
	$Layer/Help.text = keys
	_camera.make_current()


func _process(delta: float) -> void:
	if not _island:
		_island = _scene.find_children("*", "FeatureIsland", false, false)[0]
		delta = 1.0
	var followed: Vector3 = _island.focus().global_position
	var share: float = clampf(FOLLOW_PER_SEC * delta, 0.0, 1.0)
	if _camera.global_position.distance_to(followed) > 3.0 * offset.length():
		share = 1.0
	_camera.global_position = _camera.global_position.lerp(followed + offset, share)
	_camera.look_at(followed + look_at_offset)
	var figures: Dictionary = {"control": _island.agents[0].heuristic}
	figures.merge(_island.describe(_island.agents[0]))
	figures.merge({"episodes": _scene.episodes, "successes": _scene.successes})
	var lines: PackedStringArray = []
	for key: String in figures:
		var value: Variant = figures[key]
		lines.append("%-18s %s" % [key, "%.2f" % value if value is float else str(value)])
	_label.text = "\n".join(lines)
