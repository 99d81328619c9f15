class_name UIInteractionController
extends FeatureAgent
## Points with a controller's ray, presses its trigger and holds its grip; sees 37 numbers: where
## the ray meets the menu, the states of its elements, the page, and what is to be done.

## How fast the ray may turn along each axis. Steps rather than a continuous speed: all actions are
## discrete then, and a policy cannot get stuck beyond the end of a range.
const SPEEDS: Array[float] = [-1.0, -0.25, 0.0, 0.25, 1.0]

var point: Vector2 = Vector2.ZERO
var trigger: bool = false
var grip: bool = false


func get_obs() -> Dictionary:
	var room: MenuRoom = island
	var seen: Array = [room.pointer.x, room.pointer.y, 1.0 if room.hit_slot >= 0 else 0.0]
	for slot: MenuSlot in room.slots:
		(
			seen
			. append_array(
				[
					1.0 if slot.is_shown else 0.0,
					1.0 if slot.is_enabled() else 0.0,
					1.0 if slot.is_focused else 0.0,
					slot.value,
				]
			)
		)
	seen.append(MenuTree.path_to(room.page).size() / 3.0)
	for page: String in MenuTree.PAGES:
		seen.append(1.0 if page == room.page else 0.0)
	for leaf: int in room.leaves.size():
		seen.append(1.0 if leaf == room.goal else 0.0)
	seen.append_array([room.goal_value, 1.0 if room.held_slot >= 0 else 0.0])
	seen.append_array([1.0 if trigger else 0.0, 1.0 if grip else 0.0])
	return {"obs": seen}


func get_action_space() -> Dictionary:
	return {
		"point_x": {"size": SPEEDS.size(), "action_type": "discrete"},
		"point_y": {"size": SPEEDS.size(), "action_type": "discrete"},
		"trigger": {"size": 2, "action_type": "discrete"},
		"grip": {"size": 2, "action_type": "discrete"},
	}


func set_action(action: Variant) -> void:
	super(action)
	point = Vector2(SPEEDS[int(action["point_x"])], SPEEDS[int(action["point_y"])])
	trigger = int(action["trigger"]) == 1
	grip = int(action["grip"]) == 1
