class_name TagDriver
extends Node
## Commands the agents of a game, and is called when a decision has been played.
##
## Drivers: a person, bots and policies (TagPlayers), evaluation matches (TagEvaluation), Python
## through a channel (TagLockstep), any trainer (TagTraining), or a server (RLEnv).

var game: TagGame


## Take over a game whose arenas exist; returns the problem, or "".
func start(played: TagGame) -> String:
	game = played
	return ""


## Command the agents for the next decision; false while there is nothing to play.
func decide() -> bool:
	return false


## The decision was played.
func conclude() -> void:
	pass


## Whether a person may start the next episode at any time.
func may_restart() -> bool:
	return false
