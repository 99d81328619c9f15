@tool
extends RefCounted
## What PositionSensor2D and PositionSensor3D share.


## The chosen parts of each relative position, as numbers in [-1, 1]; `places` are Vector2 or
## Vector3 in the sensor's frame.
static func numbers(sensor: Node, places: Array, axes: Array[int]) -> Array[float]:
	var found: Array[float] = []
	for place: Variant in places:
		var vector: Variant = place.normalized()
		if not sensor.use_separate_direction:
			vector = place.limit_length(sensor.max_distance) / sensor.max_distance
		for axis: int in axes:
			found.append(vector[axis])
		if sensor.use_separate_direction:
			found.append(minf(place.length() / sensor.max_distance, 1.0))
	return found


static func warnings(sensor: Node, axes: Array[int]) -> PackedStringArray:
	var found: PackedStringArray = []
	if sensor.objects_to_observe.is_empty():
		found.append("objects_to_observe is empty: the sensor sees nothing.")
	if null in sensor.objects_to_observe:
		found.append("objects_to_observe has an empty element, which is observed as zeros.")
	if not axes:
		found.append("No axis is included: the sensor observes no position and no direction.")
	return found
