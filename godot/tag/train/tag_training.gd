class_name TagTraining
extends TagDriver
## Matches played by any trainer that speaks the protocol of Godot RL Agents.
##
## A decision of the rules is one action of Sync. The time limit is a rule of the game, and the time
## left is observed: every end is a termination.

var _controllers: Array[Controller] = []


func start(played: TagGame) -> String:
	super(played)
	for arena: TagArena in game.arenas:
		for i: int in 2:
			var controller: Controller = Controller.new(arena.game, i)
			controller.name = "%sAgent%d" % [arena.name, i + 1]
			add_child(controller)
			_controllers.append(controller)
	return ""


func decide() -> bool:
	for arena: int in game.arenas.size():
		game.arenas[arena].game.command(
			_controllers[2 * arena].action, _controllers[2 * arena + 1].action
		)
	return true


func conclude() -> void:
	for arena: int in game.arenas.size():
		var played: TagMatch = game.arenas[arena].game
		for i: int in 2:
			_controllers[2 * arena + i].reward += played.rewards[i]
		if played.end != TagMatch.End.GOING_ON:
			for i: int in 2:
				_controllers[2 * arena + i].done = true
			_begin(arena)


func _physics_process(_delta: float) -> void:
	for controller: Controller in _controllers:
		if controller.needs_reset:
			_restart()
			return


## The trainer asked for a reset.
func _restart() -> void:
	game.restart()
	for arena: int in game.arenas.size():
		_begin(arena)


## Start an episode with the seed of its first agent.
func _begin(arena: int) -> void:
	for i: int in 2:
		_controllers[2 * arena + i].reset()
	var played: TagMatch = game.arenas[arena].game
	played.seed_value = _controllers[2 * arena].episode_seed
	played.episode = -1
	game.begin_next(arena)


## One agent of a match as the trainer sees it.
class Controller:
	extends AIController3D

	var game: TagMatch
	var index: int
	## Its action in the next decision.
	var action: PackedFloat32Array = [0.0, 0.0, 0.0]

	func _init(played: TagMatch, which: int) -> void:
		game = played
		index = which
		reset_after = 1 << 62
		policy_name = "seeker" if which == game.first_seeker else "hider"

	func get_obs() -> Dictionary:
		return {"obs": game.observations[index]}

	func get_action_space() -> Dictionary:
		return {
			"move": {"size": 2, "action_type": "continuous"},
			"jump": {"size": 1, "action_type": "continuous"},
		}

	func set_action(wanted: Variant) -> void:
		action[0] = wanted["move"][0]
		action[1] = wanted["move"][1]
		action[2] = wanted["jump"][0]
