class_name VRTrackingAIController
extends FeatureAgent
## The agent of the tracking scene: sees both hands and their targets (21 numbers) and moves the
## hands (2 × 3 continuous actions).

var arena: TrackingArena:
	get:
		return island


func get_obs() -> Dictionary:
	var seen: Array = []
	for part: Array in get_named_obs().values():
		seen.append_array(part)
	return {"obs": seen}


func get_named_obs() -> Dictionary:
	var rig: VRRig = arena.rig
	return {
		"camera_position": _numbers(rig.camera.position),
		"left_controller_position": _numbers(rig.left_hand.position),
		"left_controller_velocity": _numbers(arena.hand_velocities[0]),
		"left_target": _numbers(arena.way(0)),
		"right_controller_position": _numbers(rig.right_hand.position),
		"right_controller_velocity": _numbers(arena.hand_velocities[1]),
		"right_target": _numbers(arena.way(1)),
	}


func get_info() -> Dictionary:
	return summary if summary else arena.describe(self).merged({"success": false}, true)


func get_action_space() -> Dictionary:
	var hand: Dictionary = {"size": 3, "action_type": "continuous"}
	return {"left": hand, "right": hand}


func set_action(action: Variant) -> void:
	super(action)
	for hand: int in 2:
		var numbers: Array = action["left" if hand == 0 else "right"]
		var wish: Vector3 = Vector3(numbers[0], numbers[1], numbers[2])
		arena.wishes[hand] = wish.clamp(-Vector3.ONE, Vector3.ONE)


static func _numbers(from: Vector3) -> Array:
	return [from.x, from.y, from.z]
