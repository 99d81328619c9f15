extends FeatureScene
## Reach for targets with both hands: tests that head and hands are tracked without jumps.
##
## By hand: WASD move the right hand (with Shift the left one) sideways and up, J and L towards you
## and away.

const ARENA: PackedScene = preload("tracking_arena.tscn")


func make_island(_index: int) -> Node3D:
	return ARENA.instantiate()
