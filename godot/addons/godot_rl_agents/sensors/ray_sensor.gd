@tool
extends RefCounted
## What RaycastSensor2D and RayCastSensor3D share, apart from the casting itself.


static func warnings(sensor: Node, rays: int) -> PackedStringArray:
	var found: PackedStringArray = []
	if rays < 1:
		found.append("There are %d rays: the sensor sees nothing." % maxi(rays, 0))
	if sensor.ray_length <= 0.0:
		found.append("ray_length is %s: it must be above 0." % sensor.ray_length)
	if not sensor.collide_with_areas and not sensor.collide_with_bodies:
		found.append("Neither areas nor bodies are detected: the sensor sees nothing.")
	if sensor.collision_mask == 0:
		found.append("collision_mask has no layer: the sensor sees nothing.")
	return found


## A ray node of the sensor, RayCast2D or RayCast3D, that is cast only on request.
static func add_ray(sensor: Node, ray: Node) -> Node:
	set_up(sensor, ray)
	ray.enabled = false
	ray.visible = false
	sensor.add_child(ray, false, Node.INTERNAL_MODE_BACK)
	return ray


static func set_up(sensor: Node, ray: Node) -> void:
	ray.collision_mask = sensor.collision_mask
	ray.collide_with_areas = sensor.collide_with_areas
	ray.collide_with_bodies = sensor.collide_with_bodies


## How near the hit of a ray node of `rays` is: 1 at the sensor, 0 without a hit.
static func nearness(sensor: Node, ray: Node) -> float:
	if not ray.is_colliding():
		return 0.0
	var distance: float = sensor.global_position.distance_to(ray.get_collision_point())
	return (sensor.ray_length - minf(distance, sensor.ray_length)) / sensor.ray_length


## The angle of ray `index` of `count` that share a cone evenly, in radians from its middle.
static func angle(index: int, count: int, cone_degrees: float) -> float:
	return ((index + 0.5) / count - 0.5) * deg_to_rad(cone_degrees)


## The colour in which a ray is drawn.
static func color(near: float) -> Color:
	return RLAddon.SensorDrawing.HIT if near > 0.0 else RLAddon.SensorDrawing.FREE
