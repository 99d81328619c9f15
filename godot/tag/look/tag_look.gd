@tool
class_name TagLook
extends RefCounted
## Whether anything is drawn, and the colours that carry a meaning.
##
## Colours of roles and text are in tag_theme.tres; a surface's colour is in its scene.

const THEME: Theme = preload("res://tag/look/tag_theme.tres")
const TYPE: StringName = &"Tag"

## Without a display no visual node is created. Tests of the visuals set it.
static var wanted: bool = DisplayServer.get_name() != "headless"


## The colour that means this role, as in every chart and film.
static func role_color(role: String) -> Color:
	return THEME.get_color(role, TYPE)


## The colour of text and lines.
static func ink() -> Color:
	return THEME.get_color(&"ink", TYPE)


## The colour of panels and flashes.
static func pale() -> Color:
	return THEME.get_color(&"pale", TYPE)
