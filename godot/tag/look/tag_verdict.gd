class_name TagVerdict
extends PanelContainer
## How a match ended, in the half of the picture in which the agents are not.

@onready var _head: Label = $Lines/Head
@onready var _line: Label = $Lines/Line


## Say how a match ended; nothing while it goes on.
func tell(game: TagMatch) -> void:
	visible = game.end != TagMatch.End.GOING_ON
	if not visible:
		return
	_head.text = "Tagged!" if game.end == TagMatch.End.TAGGED else "Time is up"
	_line.text = "a draw"
	var colour: Color = TagLook.INK
	if game.winner != TagMatch.NOBODY:
		var role: String = TagLook.role_of(game, game.winner)
		_line.text = "the %s wins" % role
		colour = TagLook.ROLES[role]
	_head.add_theme_color_override("font_color", colour)
	var in_front: bool = game.agents[0].z + game.agents[1].z > 0.0
	anchor_top = 0.27 if in_front else 0.73
	anchor_bottom = anchor_top


## The verdict in one line.
func words() -> String:
	return "%s: %s" % [_head.text, _line.text]
