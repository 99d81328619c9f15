extends FeatureScene
## Land a spacecraft on its pad, then walk.
##
##   godot --path godot res://scenes/features/spacecraft_landing.tscn
##
## Parameters: `start_min_m`, `start_max_m`, `start_offset_m`, `start_speed_mps`, `pad_reach_m`,
## `gravity_mps2`, `walk` (1: a soft landing is followed by a walk to the beacon),
## `max_sec`; and of the whole game `site_km`, how far the sites are from the origin of the world.

var _first: LandingSite

@onready var origin: FloatingOrigin = $FloatingOrigin


func _ready() -> void:
	super()
	_first = find_children("*", "LandingSite", false, false)[0]
	var far: float = RLParameters.number("site_km", 0.0) * 1000.0
	origin.origin = [far, 0.0, far]


func _physics_process(_delta: float) -> void:
	origin.follow(_first.body(), self)


func get_metrics() -> Dictionary:
	return super().merged({"origin": origin.origin, "shifts": origin.shifts})
