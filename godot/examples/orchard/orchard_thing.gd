@tool
extends Area2D
## How a fruit or a thorn looks. Rays meet it; who touches it is for the player to say.

enum Kind { FRUIT, THORN }

const SPIKES: int = 9

@export var kind: Kind = Kind.FRUIT:
	set(value):
		kind = value
		queue_redraw()


func _draw() -> void:
	if kind == Kind.FRUIT:
		draw_circle(Vector2.ZERO, OrchardPlayer.FRUIT_RADIUS, OrchardArena.FRUIT, true, -1.0, true)
		draw_line(Vector2(0.0, -9.0), Vector2(3.0, -17.0), Color("6b4a2f"), 3.0, true)
		draw_circle(Vector2(8.0, -15.0), 4.0, Color("5f9e4b"), true, -1.0, true)
		return
	var star: PackedVector2Array = []
	for corner: int in 2 * SPIKES:
		var reach: float = OrchardPlayer.THORN_RADIUS * (1.0 if corner % 2 else 0.5)
		star.append(reach * Vector2.from_angle(PI * corner / SPIKES))
	draw_colored_polygon(star, Color("5a3f63"))
