class_name TagOptions
extends RefCounted
## What was asked for when the game was started: `--layout=NAME` after `--`, or ESTRAGON_LAYOUT.

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
	"channel": "",
}
const MOST_ARENAS: int = 1024

## What is wrong with the options, or "".
var error: String = ""

var _values: Dictionary[String, String] = DEFAULTS.duplicate()


## Options from this process's environment and command line; the latter wins.
static func of_process() -> TagOptions:
	var environment: Dictionary[String, String] = {}
	for name: String in DEFAULTS:
		var variable: String = "ESTRAGON_" + name.to_upper().replace("-", "_")
		if OS.has_environment(variable):
			environment[name] = OS.get_environment(variable)
	return of(OS.get_cmdline_user_args(), environment)


## Options from these words and settings.
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


func number(name: String) -> int:
	return _values[name].to_int()


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
	if _values.channel:
		_check_number("channel", 1, 65535)
	if not _values.play in ["", "nobody", "seeker", "hider"]:
		_fail("--play: expected seeker, hider or nobody, got '%s'" % _values.play)
	for role: String in ["seeker", "hider"]:
		if not TagBot.NAMES.has(_values[role]):
			var known: String = ", ".join(TagBot.NAMES.keys())
			_fail("--%s: no bot '%s'; there are %s" % [role, _values[role], known])


func _check_number(name: String, least: int, most: int) -> void:
	var value: String = _values[name]
	if not value.is_valid_int() or value.to_int() < least or value.to_int() > most:
		_fail("--%s: expected a whole number from %d to %d, got '%s'" % [name, least, most, value])


## The first complaint is the one to tell.
func _fail(complaint: String) -> void:
	if not error:
		error = complaint
