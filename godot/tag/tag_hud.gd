class_name TagHud
extends CanvasLayer
## Time left, score, and what the keys do.

const HELP: String = "WASD run   Space jump   Tab camera   R restart   Esc leave"

## The game whose first arena is reported.
@export var game: TagGame

var _score: Array[int] = [0, 0]
var _verdict: String = ""

@onready var _clock: Label = $Clock
@onready var _line: Label = $Line
@onready var _keys: Label = $Keys


func _ready() -> void:
	_keys.text = HELP
	game.episode_ended.connect(_on_episode_ended)


func _process(_delta: float) -> void:
	if game.arenas.is_empty():
		return
	var match_shown: TagMatch = game.arenas[0].game
	var left: int = game.rules.limit_ticks - match_shown.tick
	_clock.text = "%.1f" % (float(left) / game.rules.ticks_per_second)
	if match_shown.end == TagMatch.End.GOING_ON:
		_verdict = ""
	_line.text = "seeker %d : %d hider   %s" % [_score[0], _score[1], _verdict]


func _get_configuration_warnings() -> PackedStringArray:
	return [] if game else ["Set the game to report."]


func _on_episode_ended(arena: int, ended: TagMatch) -> void:
	if arena != 0:
		return
	_verdict = "Tagged!" if ended.end == TagMatch.End.TAGGED else "Time is up."
	if ended.winner == TagMatch.NOBODY:
		_verdict += " A draw."
	else:
		_score[0 if ended.winner == ended.first_seeker else 1] += 1
