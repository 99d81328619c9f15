@tool
class_name TagSet
extends Node3D
## What surrounds a stage for whoever watches it: light, sky, camera and HUD.
##
## Put it beside a stage, after it. Where nothing is drawn it rests.

const KEYS: String = """WASD  run     Space  jump
Tab  camera     V  rays
R  restart     H  hide this
Esc  leave"""

## What is watched.
@export var stage: TagStage:
	set(value):
		stage = value
		update_configuration_warnings()
## Whether the agents' rays are drawn; the key V changes it.
@export var show_rays: bool = false
## What the keys do, for the HUD to say; the key H hides it.
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
	return [] if stage else ["Set the stage that is to be watched."]
