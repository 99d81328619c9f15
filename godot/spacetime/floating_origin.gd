class_name FloatingOrigin
extends Node
## Keeps a scene near the origin of the engine, whose coordinates are single precision, however far
## away its place in the world is: moves everything when what it follows has gone too far.
##
## Velocities and relative positions do not change. The shift is in whole metres, so that places on
## a grid of metres stay exact.

signal shifted(by: Vector3)

## What is followed may be this far from the engine's origin.
@export_range(16.0, 100000.0, 1.0, "suffix:m") var reach_m: float = 4096.0

## Where the engine's origin is in the world, in double precision: x, y, z.
var origin: PackedFloat64Array = [0.0, 0.0, 0.0]
var shifts: int = 0


## Where a place is in the world.
func to_world(local: Vector3) -> PackedFloat64Array:
	return [origin[0] + local.x, origin[1] + local.y, origin[2] + local.z]


## The distance in the world between two places of `to_world`.
static func distance(first: PackedFloat64Array, second: PackedFloat64Array) -> float:
	var sum: float = 0.0
	for i: int in 3:
		sum += (first[i] - second[i]) * (first[i] - second[i])
	return sqrt(sum)


## Move `root`'s children so that what is followed is near the origin, if it is not; whether it was.
func follow(followed: Node3D, root: Node3D) -> bool:
	var at: Vector3 = followed.global_position
	if absf(at.x) < reach_m and absf(at.y) < reach_m and absf(at.z) < reach_m:
		return false
	var by: Vector3 = -at.round()
	for child: Node in root.get_children():
		if child is Node3D:
			_move(child, by)
	for i: int in 3:
		origin[i] -= by[i]
	shifts += 1
	shifted.emit(by)
	return true


## Bodies that physics moves do not follow their parents.
func _move(node: Node3D, by: Vector3) -> void:
	var bodies: Array[Node] = node.find_children("*", "RigidBody3D", true, false)
	var places: Array = bodies.map(func(body: Node3D) -> Vector3: return body.global_position)
	node.global_position += by
	for i: int in bodies.size():
		bodies[i].global_position = places[i] + by
