class_name TagCard
extends Panel
## One agent in the HUD: its role, player and score, and what it sees.

## Height of the strip of a ray that hits something at the end of its range, as a share.
@export_range(0.0, 1.0, 0.01) var far_height: float = 0.18

var role: String = "seeker"
var player: String = ""
var score: int = 0

var _observation: PackedFloat32Array = []
var _rays: int = 0

@onready var _sight: Control = $Sight


func _ready() -> void:
	_sight.draw.connect(_draw_sight)


## Show an agent of a match.
func show_agent(game: TagMatch, agent: int, played_by: String, won: int) -> void:
	role = game.role_of(agent)
	player = played_by
	score = won
	_observation = game.observations[agent]
	_rays = game.rules.rays
	var color: Color = TagLook.role_color(role)
	$Accent.color = color
	$Role.text = role.to_upper()
	$Role.add_theme_color_override("font_color", color)
	$Player.text = player
	$Score.text = str(score)
	_sight.queue_redraw()


## The rays from left to right: what is near is tall and dark.
func _draw_sight() -> void:
	var strip: Vector2 = _sight.size
	_sight.draw_rect(Rect2(Vector2.ZERO, strip), Color(TagLook.ink(), 0.08))
	var other: Color = TagLook.role_color("hider" if role == "seeker" else "seeker")
	var width: float = strip.x / maxi(_rays, 1)
	for ray: int in _rays:
		var sight: TagSight = TagSight.of(_observation, ray)
		if sight.kind == TagSight.Kind.NOTHING:
			continue
		var nearness: float = 1.0 - sight.distance
		var color: Color = TagLook.pale().lerp(TagLook.ink(), 0.15 + 0.6 * nearness)
		if sight.kind == TagSight.Kind.AGENT:
			color = TagLook.pale().lerp(other, 0.6 + 0.4 * nearness)
		var tall: float = strip.y * (far_height + (1.0 - far_height) * nearness * nearness)
		_sight.draw_rect(Rect2(ray * width, 0.5 * (strip.y - tall), width - 1.0, tall), color)
