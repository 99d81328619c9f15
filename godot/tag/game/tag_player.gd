class_name TagPlayer
extends RefCounted
## Plays a role in any number of arenas: a bot, or a trained policy.

## What is wrong with it, or "".
var error: String = ""


## The action (move_x, move_z, jump) for an observation.
func act(_obs: PackedFloat32Array) -> PackedFloat32Array:
	return PackedFloat32Array([0.0, 0.0, 0.0])


## An action for every observation.
func act_all(observations: Array[PackedFloat32Array]) -> Array[PackedFloat32Array]:
	var actions: Array[PackedFloat32Array] = []
	for obs: PackedFloat32Array in observations:
		actions.append(act(obs))
	return actions
