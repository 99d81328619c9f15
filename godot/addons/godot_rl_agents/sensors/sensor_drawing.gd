@tool
## When and in which colours sensors draw what they see.

const FREE: Color = Color(0.35, 0.8, 1.0, 0.35)
const HIT: Color = Color(1.0, 0.35, 0.3, 0.9)
const EMPTY_CELL: Color = Color(0.5, 0.5, 0.5, 0.3)
const FULL_CELL: Color = Color(1.0, 0.4, 0.4, 0.5)


## Whether it can be seen: in the editor, and in the game if asked for there, or if the game was
## started with visible collision shapes (menu Debug).
static func is_seen(sensor: Node, in_game: bool) -> bool:
	if not sensor.is_inside_tree() or DisplayServer.get_name() == "headless":
		return false
	return in_game or Engine.is_editor_hint() or sensor.get_tree().debug_collisions_hint
