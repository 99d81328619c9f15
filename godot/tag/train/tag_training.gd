class_name TagTraining
extends TagDriver
## Matches played by any trainer that speaks the protocol of Godot RL Agents.
##
## A decision of the rules is one action of Sync. Running out of time is a rule of the game, and the
## time left is seen: every end is a termination.

var _controllers: Array[TagController] = []


func take_charge(of: TagGame) -> String:
	super(of)
	for arena: TagArena in game.arenas:
		for i: int in 2:
			var controller: TagController = TagController.new(arena.game, i)
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
	for controller: TagController in _controllers:
		if controller.needs_reset:
			_restart()
			return


## A trainer wants to begin anew.
func _restart() -> void:
	game.restart()
	for arena: int in game.arenas.size():
		_begin(arena)


## Begin an episode whose chances are those of its first agent's.
func _begin(arena: int) -> void:
	for i: int in 2:
		_controllers[2 * arena + i].reset()
	var played: TagMatch = game.arenas[arena].game
	played.seed_value = _controllers[2 * arena].episode_seed
	played.episode = -1
	game.begin_next(arena)
