@tool
class_name TagView
extends Node3D
## Light, sky, camera and HUD for a stage.
##
## Place it beside the stage, after it. Without a display it is disabled.

const KEYS: String = """WASD  run     Space  jump
Tab  camera     V  rays
R  restart     H  hide this
Esc  leave"""

## The stage to show.
@export var stage: TagStage:
	set(value):
		stage = value
		update_configuration_warnings()
## Whether the agents' rays are drawn; the key V changes it.
@export var show_rays: bool = false
## The explanation of the keys in the HUD; the key H hides it.
@export_multiline var keys: String = KEYS

@onready var camera: TagCamera = $Camera
@onready var hud: TagHud = $Hud
@onready var _sun: DirectionalLight3D = $Sun


func _ready() -> void:
	if Engine.is_editor_hint():
		set_process(false)
		return
	if not TagLook.wanted:
		process_mode = PROCESS_MODE_DISABLED
		return
	TagInput.install()
	camera.stage = stage
	hud.watch(stage, keys)


func _process(_delta: float) -> void:
	_sun.directional_shadow_max_distance = camera.far
	for arena: TagArena in stage.arenas:
		arena.look.show_rays = show_rays


func _unhandled_input(event: InputEvent) -> void:
	if event.is_action_pressed("show_rays"):
		show_rays = not show_rays


func _get_configuration_warnings() -> PackedStringArray:
	return [] if stage else ["Set the stage to show."]
