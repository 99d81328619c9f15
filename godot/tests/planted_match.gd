class_name PlantedMatch
extends TagMatch
## A match in which every observation carries an id, and every reward tells what it is for.
##
## The first number of an observation is its id: how often this match was looked at, the number of
## the arena, and the agent; a float32 holds it exactly. A decision's reward is made of the id of
## the observation it was asked with and of the action that came back, so that a mix-up shows.

const IDS_PER_LOOK: int = 64
const REMAINDER: int = 1009

var _looks: int = 0
var _ids: Array[int] = [0, 0]
var _taken: Array[PackedFloat32Array] = [[], []]


static func planted_reward(id: int, action: PackedFloat32Array) -> float:
	return id % REMAINDER + action[0] + 2.0 * action[1] + 4.0 * action[2]


func sense() -> void:
	super()
	for i: int in 2:
		observations[i][0] = IDS_PER_LOOK * _looks + 2 * number + i
	_looks += 1


func command(action_0: PackedFloat32Array, action_1: PackedFloat32Array) -> void:
	super(action_0, action_1)
	_taken = [action_0, action_1]
	for i: int in 2:
		_ids[i] = int(observations[i][0])


func conclude() -> void:
	super()
	for i: int in 2:
		rewards[i] = planted_reward(_ids[i], _taken[i])
		terms[i].fill(0.0)
		terms[i][0] = rewards[i]
