class_name TagOptions
extends RefCounted
## Options of the game: `--layout=NAME` after `--` on the command line, or ESTRAGON_LAYOUT.

const DEFAULTS: Dictionary[String, String] = {
	"arenas": "1",
	"layout": "",
	"rules": "",
	"rules-file": "",
	"rewards": "",
	"seed": "0",
	"first-arena": "0",
	"first-seeker": "0",
	"play": "",
	"seeker": "bot:chaser",
	"hider": "bot:evader",
	"level": "",
	"matches": "0",
	"channel": "",
	"live": "0",
	"server": "",
	"server-wait": "60",
	"title": "",
	"log-trajectories": "0",
	"data-root": "",
	"replay": "",
	"speed": "1",
	"seeker-name": "",
	"hider-name": "",
	"record": "0",
	"record-fps": "60",
	"frames-to": "",
	"first-frame": "0",
	"last-frame": "",
	"times": "",
	"keep-frames": "0",
	"hud": "1",
}
## Environment variables that are not named like ESTRAGON_LAYOUT.
const VARIABLES: Dictionary[String, String] = {
	"log-trajectories": "AI_LOG_TRAJECTORIES",
	"data-root": "AI_DATA_ROOT",
	"replay": "AI_REPLAY_PATH",
	"record": "AI_RECORD",
	"record-fps": "AI_RECORD_FPS",
}
const ON: PackedStringArray = ["1", "true", "yes", "on"]
const OFF: PackedStringArray = ["", "0", "false", "no", "off"]
const MOST_ARENAS: int = 1024
const MOST_MATCHES: int = 1000000
const MOST_FRAMES: int = 999999
const MOST_FPS: int = 240
const SLOWEST: float = 0.1
const FASTEST: float = 4.0
const LONGEST_WAIT_SEC: float = 86400.0

## Options that do not say who plays: with only these, the game looks for a server.
const NEUTRAL: PackedStringArray = [
	"server",
	"server-wait",
	"log-trajectories",
	"data-root",
	"replay",
	"record",
	"record-fps",
]

## What is wrong with the options, or "".
var error: String = ""
## Whether the game lets a server play if there is one, although none was requested.
var finds_server: bool = false

var _values: Dictionary[String, String] = DEFAULTS.duplicate()


## Options from this process's environment and command line; the latter wins.
static func of_process() -> TagOptions:
	var environment: Dictionary[String, String] = {}
	for name: String in DEFAULTS:
		var made: String = "ESTRAGON_" + name.to_upper().replace("-", "_")
		var variable: String = VARIABLES.get(name, made)
		if OS.has_environment(variable):
			environment[name] = OS.get_environment(variable)
	var options: TagOptions = of(OS.get_cmdline_user_args(), environment)
	options.finds_server = OS.has_feature("editor") and options._is_neutral(environment)
	return options


## Options from these arguments and settings.
static func of(words: PackedStringArray, settings: Dictionary[String, String]) -> TagOptions:
	var options: TagOptions = TagOptions.new()
	for name: String in settings:
		options._values[name] = settings[name]
	for word: String in words:
		options._take(word)
	options._check()
	return options


func text(name: String) -> String:
	return _values[name]


## Change an option.
func put(name: String, value: String) -> void:
	_values[name] = value


func number(name: String) -> int:
	return _values[name].to_int()


func real(name: String) -> float:
	return _values[name].to_float()


func is_on(name: String) -> bool:
	return _values[name].to_lower() in ON


## A file or folder, relative to where Godot was started: it changes the current folder.
func path(name: String) -> String:
	var given: String = _values[name]
	if given.is_relative_path() and given and OS.has_environment("PWD"):
		return OS.get_environment("PWD").path_join(given)
	return given


## A folder in the data root, such as `frames`.
func data_folder(name: String) -> String:
	var root: String = path("data-root")
	return (root if root else "user://data").path_join(name)


## Whether the game was started like from the editor, without options that say who plays.
##
## Godot's own options have no "="; a trainer's have, such as --port=11008.
func _is_neutral(environment: Dictionary[String, String]) -> bool:
	for name: String in environment:
		if not name in NEUTRAL:
			return false
	for word: String in OS.get_cmdline_args() + OS.get_cmdline_user_args():
		if word.begins_with("--") and "=" in word:
			if not word.trim_prefix("--").get_slice("=", 0) in NEUTRAL:
				return false
	return true


func _take(word: String) -> void:
	var parts: PackedStringArray = word.trim_prefix("--").split("=", true, 1)
	if not word.begins_with("--") or parts.size() != 2 or not DEFAULTS.has(parts[0]):
		_fail("unknown option '%s'; there are --%s=" % [word, "=, --".join(DEFAULTS.keys())])
		return
	_values[parts[0]] = parts[1]


func _check() -> void:
	_check_number("arenas", 1, MOST_ARENAS)
	_check_number("seed", 0, 0xFFFFFFFF)
	_check_number("first-arena", 0, 0xFFFFFFFF)
	_check_number("first-seeker", 0, 1)
	_check_number("matches", 0, MOST_MATCHES)
	_check_number("record-fps", 1, MOST_FPS)
	_check_number("first-frame", 0, MOST_FRAMES)
	for name: String in ["live", "log-trajectories", "record", "keep-frames", "hud"]:
		if not _values[name].to_lower() in ON + OFF:
			_fail("--%s: expected 1 or 0, got '%s'" % [name, _values[name]])
	if _values.channel:
		_check_number("channel", 1, 65535)
	if _values["last-frame"]:
		_check_number("last-frame", number("first-frame"), MOST_FRAMES)
	_check_real("speed", SLOWEST, FASTEST)
	_check_real("server-wait", 0.0, LONGEST_WAIT_SEC)
	var scheme: String = _values.server.get_slice("://", 0)
	if _values.server and not (scheme in ["ws", "wss"] and _values.server.contains("://")):
		_fail(
			"--server: expected an address such as ws://127.0.0.1:8765, got '%s'" % _values.server
		)
	if not _values.play in ["", "nobody", "seeker", "hider"]:
		_fail("--play: expected seeker, hider or nobody, got '%s'" % _values.play)
	for role: String in ["seeker", "hider"]:
		if _values[role].begins_with("bot:") and not TagBot.NAMES.has(_values[role]):
			var known: String = ", ".join(TagBot.NAMES.keys())
			_fail("--%s: no bot '%s'; there are %s" % [role, _values[role], known])


func _check_number(name: String, least: int, most: int) -> void:
	var value: String = _values[name]
	if not value.is_valid_int() or value.to_int() < least or value.to_int() > most:
		_fail("--%s: expected a whole number from %d to %d, got '%s'" % [name, least, most, value])


func _check_real(name: String, least: float, most: float) -> void:
	if not _values[name].is_valid_float() or real(name) < least or real(name) > most:
		_fail("--%s: expected %s to %s, got '%s'" % [name, least, most, _values[name]])


## Keep the first problem.
func _fail(problem: String) -> void:
	if not error:
		error = problem
