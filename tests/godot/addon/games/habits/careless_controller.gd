extends AIController3D
# As many games have it: no types, no super(), and get_reward decides that the episode is over.

var best = 0
var steps = 0
var turn = 0.0


func _ready():
	reset()


func get_obs():
	var shade = PackedByteArray([steps % 256, 1, 2, 3, 4, 5])
	return {"obs": [float(steps), turn], "camera_2d": shade, "half_2d": shade.hex_encode()}


func get_obs_space():
	return {
		"obs": {"size": [2], "space": "box"},
		"camera_2d": {"size": [1, 2, 3], "space": "box"},
		"half_2d": {"size": [1, 2, 3], "space": "box"},
	}


func get_reward():
	if steps >= 10:
		done = true
		needs_reset = true
		return 100.0
	return float(steps)


func get_action_space():
	return {"turn": {"size": 1, "action_type": "continuous"}}


func set_action(action):
	turn = clamp(action["turn"][0], -1.0, 1.0)


func reset():
	steps = 0
	done = false
	needs_reset = false
	reward = 0.0


func _physics_process(_delta):
	if needs_reset:
		reset()
		return
	steps += 1
