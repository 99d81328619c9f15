class_name TagCard
extends PanelContainer
## An agent's role, player, score and sight, on one side of the picture.

const EDGE: float = 16.0
const ACCENT: float = 5.0
const ROLE_SIZE: int = 28
const NAME_SIZE: int = 17
const SCORE_SIZE: int = 54
const NOTE_SIZE: int = 14
const STRIP: Vector2 = Vector2(200.0, 54.0)
const STRIP_TOP: float = 150.0

## Whether everything keeps to the right.
@export var to_the_right: bool = false
@export var bold: Font

var role: String = "seeker"
var player: String = ""
var score: int = 0

var _sight: PackedFloat32Array = []
var _rays: int = 0


## Show an agent of a match.
func tell(game: TagMatch, agent: int, played_by: String, won: int) -> void:
	role = TagLook.role_of(game, agent)
	player = played_by
	score = won
	_sight = game.observations[agent]
	_rays = game.rules.rays
	queue_redraw()


func _draw() -> void:
	var side: float = size.x - ACCENT if to_the_right else 0.0
	draw_rect(Rect2(side, EDGE, ACCENT, size.y - 2.0 * EDGE), TagLook.ROLES[role])
	_write(role.to_upper(), 36.0, ROLE_SIZE, TagLook.ROLES[role], bold)
	_write(player, 62.0, NAME_SIZE, Color(TagLook.INK, 0.75), get_theme_default_font())
	_write(str(score), 128.0, SCORE_SIZE, TagLook.INK, bold)
	var left: float = size.x - EDGE - STRIP.x if to_the_right else EDGE
	draw_set_transform(Vector2(left, STRIP_TOP))
	_draw_sight()
	draw_set_transform(Vector2.ZERO)
	var note: float = STRIP_TOP + STRIP.y + 22.0
	_write("what it sees", note, NOTE_SIZE, Color(TagLook.INK, 0.6), get_theme_default_font())


func _write(text: String, base: float, font_size: int, colour: Color, font: Font) -> void:
	var side: HorizontalAlignment = (
		HORIZONTAL_ALIGNMENT_RIGHT if to_the_right else HORIZONTAL_ALIGNMENT_LEFT
	)
	var width: float = size.x - 2.0 * EDGE
	draw_string(font, Vector2(EDGE, base), text, side, width, font_size, colour)


## The rays from left to right as a narrow window: what is near is tall and dark.
func _draw_sight() -> void:
	draw_rect(Rect2(Vector2.ZERO, STRIP), Color(TagLook.INK, 0.08))
	var other: Color = TagLook.ROLES["hider" if role == "seeker" else "seeker"]
	var width: float = STRIP.x / maxi(_rays, 1)
	for ray: int in _rays:
		var sight: TagSight = TagSight.of(_sight, ray)
		if sight.kind == TagSight.Kind.NOTHING:
			continue
		var nearness: float = 1.0 - sight.distance
		var colour: Color = TagLook.PALE.lerp(TagLook.INK, 0.15 + 0.6 * nearness)
		if sight.kind == TagSight.Kind.AGENT:
			colour = TagLook.PALE.lerp(other, 0.6 + 0.4 * nearness)
		var tall: float = STRIP.y * (0.18 + 0.82 * nearness * nearness)
		draw_rect(Rect2(ray * width, 0.5 * (STRIP.y - tall), width - 1.0, tall), colour)
