class_name TagSight
extends RefCounted
## What one ray of an observation says.

enum Kind { NOTHING, SOLID, AGENT }

## As a share of how far the eyes reach.
var distance: float
var kind: Kind


static func of(observation: PackedFloat32Array, ray: int) -> TagSight:
	var sight: TagSight = TagSight.new()
	var place: int = TagObservation.rays + TagObservation.RAY_CHANNELS * ray
	sight.distance = observation[place]
	if observation[place + 2] > 0.5:
		sight.kind = Kind.AGENT
	elif observation[place + 1] > 0.5:
		sight.kind = Kind.SOLID
	return sight
