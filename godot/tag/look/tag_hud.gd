class_name TagHud
extends CanvasLayer
## What there is to know of the first arena: time left, players, score, verdict, and the keys.

## Whether the keys are explained; the key H changes it.
var show_keys: bool = true

var _stage: TagStage
## Won by who began as the seeker, and by the other.
var _score: Array[int] = [0, 0]

@onready var _clock: Label = $Clock
@onready var _time_left: ColorRect = $Clock/Left
@onready var _title: Label = $Title
@onready var _note: Label = $Note
@onready var _keys: Label = $Keys
@onready var _verdict: TagVerdict = $Verdict
@onready var _cards: Array[TagCard] = [$FirstCard, $SecondCard]


func _process(_delta: float) -> void:
	_keys.visible = show_keys and _keys.text != ""
	if not _stage or _stage.arenas.is_empty():
		return
	var game: TagMatch = _stage.arenas[0].game
	_show_time(game)
	_title.text = _stage.title
	_title.visible = _stage.title != ""
	_note.text = _stage.note
	_note.visible = _stage.note != ""
	_verdict.tell(game)
	for side: int in 2:
		var agent: int = game.first_seeker if side == 0 else 1 - game.first_seeker
		_cards[side].tell(game, agent, _name_of(game, agent), _score[side])


func _unhandled_input(event: InputEvent) -> void:
	if event.is_action_pressed("show_keys"):
		show_keys = not show_keys


## Report on this stage, and say what the keys do.
func watch(stage: TagStage, keys: String) -> void:
	_stage = stage
	_keys.text = keys
	stage.episode_ended.connect(_on_episode_ended)
	stage.players_changed.connect(_score.fill.bind(0))


func _show_time(game: TagMatch) -> void:
	var moment: float = _stage.moment()
	if game.end != TagMatch.End.GOING_ON:
		moment = float(game.tick) / _stage.rules.ticks_per_second
	var left: float = maxf(_stage.rules.time_limit_sec - moment, 0.0)
	_clock.text = "%.1f" % left
	_time_left.scale.x = left / _stage.rules.time_limit_sec


## Roles have players; a person stays the same agent when the roles change.
func _name_of(game: TagMatch, agent: int) -> String:
	if "you" in _stage.players.values():
		return _stage.players["seeker" if agent == game.first_seeker else "hider"]
	return _stage.players[TagLook.role_of(game, agent)]


func _on_episode_ended(arena: int, ended: TagMatch) -> void:
	if arena == 0 and ended.winner != TagMatch.NOBODY:
		_score[0 if ended.winner == ended.first_seeker else 1] += 1
