class_name TagPlay
extends TagGame
## You against a trained policy, in either role, at any level; both can be changed while playing.

const DEFAULT_LEVEL: String = "learner"
## Your task, by your role.
const TASKS: Dictionary[String, String] = {
	"seeker": "You seek: catch the blue cube",
	"hider": "You hide: run from the red cube",
	"nobody": "Two policies play",
}

var levels: TagLevels


## The level of the opponent.
func level() -> String:
	return options.text("level")


## The role that you play, or "nobody".
func role() -> String:
	return options.text("play")


## Start a new match in this role, against this level.
func choose(new_role: String, new_level: String) -> void:
	options.put("play", new_role)
	_set_level(new_level)
	var problem: String = driver.start(self)
	if problem:
		quit(problem)
		return
	players_changed.emit()
	restart()


func _choose_driver() -> String:
	levels = TagLevels.read()
	if levels.error:
		return levels.error
	var wanted: String = level() if level() else DEFAULT_LEVEL
	if not wanted in levels.names:
		return "--level: no level '%s'; there are %s" % [wanted, ", ".join(levels.names)]
	if not role():
		options.put("play", person_plays if TagLook.wanted else "nobody")
	_set_level(wanted)
	return super()


## Let a level play both roles; a person then takes one of them.
func _set_level(new_level: String) -> void:
	title = TASKS[role()]
	options.put("level", new_level)
	for each: String in TagPair.ROLES:
		options.put(each, new_level)
