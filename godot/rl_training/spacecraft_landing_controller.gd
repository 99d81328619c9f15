class_name SpacecraftLandingController
extends FeatureAgent
## The pilot of a spacecraft: `obs` has 14 numbers on the scale of the whole flight, `landing` 14 on
## the scale of the touchdown; 5 continuous actions.

const RAY_M: float = 1000.0
const NEAR_M: float = 20.0
const NEAR_MPS: float = 5.0
const GROUND_M: float = 10.0
const FLYING: Dictionary = {"success": false, "soft_landing": false}
const ACTIONS: Array[String] = ["thrust_x", "thrust_y", "thrust_z", "rcs_pitch", "rcs_roll"]

var terrain_m: float = RAY_M

var _ray: PhysicsRayQueryParameters3D = PhysicsRayQueryParameters3D.new()

@onready var spacecraft: Spacecraft = get_parent()


func get_obs() -> Dictionary:
	var site: LandingSite = island
	var to_pad: Vector3 = site.to_pad()
	var distance: float = to_pad.length()
	var toward: Vector3 = to_pad / maxf(distance, 0.001)
	var velocity: Vector3 = site.velocity()
	var spin: Vector3 = spacecraft.angular_velocity
	terrain_m = _look_down(site.body())
	var close: Vector3 = (to_pad / NEAR_M).clampf(-1.0, 1.0)
	var slow: Vector3 = (velocity / NEAR_MPS).clampf(-1.0, 1.0)
	var off: Vector3 = (site.off_guidance() / NEAR_MPS).clampf(-1.0, 1.0)
	var up: Vector3 = spacecraft.global_basis.inverse() * site.pad_up()
	return {
		"obs":
		[
			-to_pad.y / 1000.0,
			velocity.x / 50.0,
			velocity.y / 50.0,
			velocity.z / 50.0,
			spin.x,
			spin.y,
			spin.z,
			spacecraft.rotation.x / PI,
			spacecraft.rotation.z / PI,
			toward.x,
			toward.y,
			toward.z,
			distance / 1000.0,
			terrain_m / 100.0,
		],
		"landing":
		[
			close.x,
			close.y,
			close.z,
			slow.x,
			slow.y,
			slow.z,
			clampf(terrain_m / GROUND_M, 0.0, 1.0),
			spacecraft.fuel_kg / Spacecraft.FUEL_KG,
			up.x,
			up.y,
			up.z,
			off.x,
			off.y,
			off.z,
		],
	}


func get_info() -> Dictionary:
	return summary if summary else FLYING


func get_action_space() -> Dictionary:
	return continuous(ACTIONS)


func set_action(action: Variant) -> void:
	super(action)
	var push: Vector3 = Vector3(
		axis(action, "thrust_x"), maxf(axis(action, "thrust_y"), 0.0), axis(action, "thrust_z")
	)
	spacecraft.thrust = push.limit_length()
	spacecraft.rcs = Vector2(axis(action, "rcs_pitch"), axis(action, "rcs_roll"))


## From the feet to the ground below.
func _look_down(from: Node3D) -> float:
	_ray.from = from.global_position
	_ray.to = _ray.from + Vector3.DOWN * RAY_M
	_ray.exclude = [spacecraft.get_rid()]
	var hit: Dictionary = spacecraft.get_world_3d().direct_space_state.intersect_ray(_ray)
	var feet: float = Spacecraft.FEET_M if from == spacecraft else 0.0
	return maxf(_ray.from.y - hit["position"].y - feet, 0.0) if hit else RAY_M
