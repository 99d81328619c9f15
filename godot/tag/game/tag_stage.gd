class_name TagStage
extends Node3D
## What there is to look at: arenas with a match in each, live or replayed.
##
## Camera, HUD and recorder know a stage, not who moves the agents on it.

signal episode_began(arena: int, game: TagMatch)
signal episode_ended(arena: int, game: TagMatch)
## Others play from now on: what was won before does not count.
signal players_changed

## A headline, such as how long the two have trained; shown where there is one.
var title: String = ""
## How the connection to a server is; shown where there is something to say.
var note: String = ""
## Who plays which role, by the name to show.
var players: Dictionary[String, String] = {"seeker": "", "hider": ""}
var rules: TagRules
## The first one is shown.
var arenas: Array[TagArena] = []


## Seconds into the match that is shown, with the part of a tick that is shown already.
func moment() -> float:
	return float(arenas[0].game.tick) / rules.ticks_per_second
