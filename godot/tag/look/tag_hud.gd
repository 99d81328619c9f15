class_name TagHud
extends CanvasLayer
## Time left, players, score, verdict and keys of the first arena.

## Where the verdict appears, as a share of the picture's height: in the half without the agents.
@export_range(0.0, 1.0, 0.01) var upper_verdict: float = 0.27
@export_range(0.0, 1.0, 0.01) var lower_verdict: float = 0.73

## Whether the keys are explained; the key H changes it.
var show_keys: bool = true

var _stage: TagStage
## Won by the agent that started as the seeker, and by the other.
var _score: Array[int] = [0, 0]

@onready var _clock: Label = $Clock
@onready var _time_left: ColorRect = $Clock/Left
@onready var _eyes_closed: Label = $EyesClosed
@onready var _title: Label = $Title
@onready var _note: Label = $Note
@onready var _keys: Label = $Keys
@onready var _verdict: PanelContainer = $Verdict
@onready var _verdict_head: Label = $Verdict/Lines/Head
@onready var _verdict_line: Label = $Verdict/Lines/Line
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
	show_verdict(game)
	for side: int in 2:
		var agent: int = game.first_seeker if side == 0 else 1 - game.first_seeker
		_cards[side].show_agent(game, agent, _name_of(game, agent), _score[side])


func _unhandled_input(event: InputEvent) -> void:
	if event.is_action_pressed("show_keys"):
		show_keys = not show_keys


## Report on this stage, and explain the keys.
func watch(stage: TagStage, keys: String) -> void:
	_stage = stage
	_keys.text = keys
	stage.episode_ended.connect(_on_episode_ended)
	stage.players_changed.connect(_score.fill.bind(0))


## Show how a match ended; nothing before its end.
func show_verdict(game: TagMatch) -> void:
	_verdict.visible = game.end != TagMatch.End.GOING_ON
	if not _verdict.visible:
		return
	_verdict_head.text = "Tagged!" if game.end == TagMatch.End.TAGGED else "Time is up"
	_verdict_line.text = "a draw"
	var color: Color = TagLook.ink()
	if game.winner != TagMatch.NOBODY:
		var role: String = game.role_of(game.winner)
		_verdict_line.text = "the %s wins" % role
		color = TagLook.role_color(role)
	_verdict_head.add_theme_color_override("font_color", color)
	var in_front: bool = game.agents[0].z + game.agents[1].z > 0.0
	_verdict.anchor_top = upper_verdict if in_front else lower_verdict
	_verdict.anchor_bottom = _verdict.anchor_top


## The verdict in one line.
func verdict_text() -> String:
	return "%s: %s" % [_verdict_head.text, _verdict_line.text]


func _show_time(game: TagMatch) -> void:
	var moment: float = _stage.moment()
	if game.end != TagMatch.End.GOING_ON:
		moment = float(game.tick) / _stage.rules.ticks_per_second
	var rules: TagRules = _stage.rules
	_eyes_closed.visible = game.eyes_closed()
	_eyes_closed.text = "eyes closed  %.1f" % maxf(rules.head_start_sec - moment, 0.0)
	var left: float = clampf(rules.limit_sec - moment, 0.0, rules.time_limit_sec)
	_clock.text = "%.1f" % left
	_time_left.scale.x = left / rules.time_limit_sec


## Roles have players; a person stays the same agent when the roles change.
func _name_of(game: TagMatch, agent: int) -> String:
	if "you" in _stage.players.values():
		return _stage.players["seeker" if agent == game.first_seeker else "hider"]
	return _stage.players[game.role_of(agent)]


func _on_episode_ended(arena: int, ended: TagMatch) -> void:
	if arena == 0 and ended.winner != TagMatch.NOBODY:
		_score[0 if ended.winner == ended.first_seeker else 1] += 1
