class_name TagAgent
extends RefCounted
## One agent of a match: centre of the cube, facing, and what it remembers of the other.

var x: float
var y: float
var z: float
var velocity_x: float
var velocity_y: float
var velocity_z: float
var forward_x: float
var forward_z: float
var seen_x: float
var seen_y: float
var seen_z: float
## Tick at which the opponent was last seen; -1 never.
var seen_tick: int
var immune_ticks: int
var it_ticks: int
var on_floor: bool


## At rest on the floor, knowing nothing.
func settle(floor_y: float) -> void:
	y = floor_y
	velocity_x = 0.0
	velocity_y = 0.0
	velocity_z = 0.0
	forward_x = 0.0
	forward_z = 1.0
	seen_x = 0.0
	seen_y = 0.0
	seen_z = 0.0
	seen_tick = -1
	immune_ticks = 0
	it_ticks = 0
	on_floor = true


func distance_to(other: TagAgent) -> float:
	var apart_x: float = x - other.x
	var apart_y: float = y - other.y
	var apart_z: float = z - other.z
	return sqrt(apart_x * apart_x + apart_y * apart_y + apart_z * apart_z)


## Square of the shortest distance between the two cubes.
func gap_square(other: TagAgent, size: float) -> float:
	var gap_x: float = absf(x - other.x) - size
	var gap_y: float = absf(y - other.y) - size
	var gap_z: float = absf(z - other.z) - size
	gap_x = gap_x if gap_x > 0.0 else 0.0
	gap_y = gap_y if gap_y > 0.0 else 0.0
	gap_z = gap_z if gap_z > 0.0 else 0.0
	return gap_x * gap_x + gap_y * gap_y + gap_z * gap_z


## All of it as numbers, in the order of the fields above.
func numbers() -> PackedFloat64Array:
	return PackedFloat64Array(
		[
			x,
			y,
			z,
			velocity_x,
			velocity_y,
			velocity_z,
			forward_x,
			forward_z,
			seen_x,
			seen_y,
			seen_z,
			seen_tick,
			immune_ticks,
			it_ticks,
			1.0 if on_floor else 0.0
		]
	)
