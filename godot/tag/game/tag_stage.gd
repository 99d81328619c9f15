class_name TagStage
extends Node3D
## Arenas with a match in each, live or replayed.
##
## Camera, HUD and recorder know a stage, not who moves the agents on it.

signal episode_began(arena: int, game: TagMatch)
signal episode_ended(arena: int, game: TagMatch)
## Other players from now on: the score starts again.
signal players_changed

## Exit code for invalid options or files.
const BAD_INPUT: int = 2

## A headline, such as how long the policies were trained; "" for none.
var title: String = ""
## The state of the connection to a server; "" for none.
var note: String = ""
## The name of the player to show, by role.
var players: Dictionary[String, String] = {"seeker": "", "hider": ""}
var rules: TagRules
## The first one is shown.
var arenas: Array[TagArena] = []


## Seconds into the match that is shown, including fractions of a tick.
func moment() -> float:
	return float(arenas[0].game.tick) / rules.ticks_per_second


## End the process; a problem is printed and makes the exit code BAD_INPUT.
func quit(problem: String = "") -> void:
	if problem:
		printerr("estragon: " + problem)
	set_process(false)
	set_physics_process(false)
	set_process_unhandled_input(false)
	get_tree().quit(BAD_INPUT if problem else 0)
