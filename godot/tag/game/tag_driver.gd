class_name TagDriver
extends Node
## Who commands the agents of a game, and is told when a decision has been played.
##
## A person, bots and policies (TagPlayers), the latter alone (TagContest), Python through a channel
## (TagLockstep), or a server (RLEnv).

var game: TagGame


## Take charge of a game whose arenas are there; what is wrong, or "".
func take_charge(of: TagGame) -> String:
	game = of
	return ""


## Command the agents for the next decision; false while there is nothing to play.
func decide() -> bool:
	return false


## The decision was played.
func conclude() -> void:
	pass


## Whether a person may begin the next episode at will.
func may_restart() -> bool:
	return false
