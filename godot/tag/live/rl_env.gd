class_name RLEnv
extends TagDriver
## Live play: a server commands the agents and is told what came of it, in lockstep.
##
## Every decision asks once for all arenas, and nothing moves before the answer is there. Headless
## the game waits for it; where somebody watches it draws on. Without a server bots play for whoever
## watches. The numbers below change the rules only where they are changed: see RLSettings.

## How long the headless game waits before it looks whether its time is over.
const PATIENCE_SEC: float = 0.25
const IDLE_MSEC: int = 5
## What takes longer than this is told.
const LONG_WAIT_SEC: float = 1.0
## Where somebody watches: how long all rest when the first arena's episode is over.
const REST_TICKS: int = 60

## The way to the server.
@export var client: RLClient
## Whether the server plays both agents; if not, only the first.
@export var control_all_agents: bool = true
## Whether the server is told what its actions brought, so that it can learn.
@export var training_mode: bool = false
## Whether the first agent begins as the seeker; if not, the second does.
@export var ai_is_it: bool = true
## How long a decision lasts.
@export_range(1, 60, 1, "suffix:ticks") var step_tick_interval: int = 3
## How long an episode lasts.
@export_range(0.0, 600.0, 0.1, "or_greater", "suffix:s") var time_limit_sec: float = 10.0
## Whether every episode is logged into the folder trajectories.
@export var log_trajectories: bool = false
## Speak plain JSON, one agent at a time, for older Python bridges.
@export var legacy_act_fallback: bool = false

@export_group("Rewards")
## For every metre that the agents come nearer: to the seeker, and from the hider.
@export var distance_reward_scale: float = 0.14
## To the seeker for every decision.
@export var seeker_time_penalty: float = -0.005
## To the hider for every decision.
@export var runner_survival_bonus: float = 0.01
## For a tag.
@export var win_bonus: float = 10.0
## To the hider when the time is up.
@export var timeout_hider_bonus: float = 6.0
## From the seeker when the time is up.
@export var timeout_seeker_penalty: float = 6.0
## To the hider for every decision on high ground.
@export var high_ground_bonus: float = 0.1
## To the seeker for a jump near the hider.
@export var jump_near_bonus: float = 0.5

## Another name of `win_bonus`.
var tag_bonus: float:
	get:
		return win_bonus
	set(value):
		win_bonus = value
## Another name of `distance_reward_scale`.
var progress_reward_scale: float:
	get:
		return distance_reward_scale
	set(value):
		distance_reward_scale = value
## Seconds by the wall clock after which the game ends by itself; 0 for never.
var train_duration: float = 0.0
## What the environment says, by the name of the export; the process's own unless set before.
var variables: Dictionary[String, String] = RLSettings.of_process()
## How long an answer may take before the connection is given up.
var step_timeout_sec: float = 30.0
## Whether somebody watches, so that no frame may wait.
var is_watched: bool = DisplayServer.get_name() != "headless"

var _settings: RLSettings
var _options: TagOptions
## Bots and a person: for agents that the server does not play, and for when there is none.
var _players: TagPlayers
var _speech: RLSpeech
var _matches: Array[TagMatch] = []
var _controlled: Array[bool] = [true, true]
var _session: int = 0
var _seq: int = -1
var _is_asked: bool = false
var _asked_msec: int = 0
var _has_results: bool = false
## Whether the decision that is played came from the server.
var _is_commanded: bool = false
var _rest_ticks: int = 0
var _started_msec: int = 0


func _init() -> void:
	_settings = RLSettings.new(self)


## Read the environment and change the rules accordingly; what is wrong, or "".
func prepare(options: TagOptions, rules: TagRules) -> String:
	_options = options
	var complaint: String = _settings.take(variables)
	return complaint if complaint else _settings.adjust(rules)


## Whether the server is to play at all.
func is_wanted() -> bool:
	return training_mode or _options.is_on("live")


func take_charge(of: TagGame) -> String:
	super(of)
	if not client:
		return "RLEnv: set its client, the RLClient that connects to the server"
	for arena: TagArena in game.arenas:
		_matches.append(arena.game)
	_controlled = [true, control_all_agents]
	game.person_plays = "nobody"
	_players = TagPlayers.new()
	add_child(_players)
	_players.take_charge(game)
	# The match never asks the bodies; where nobody sees them, their physics only takes time.
	PhysicsServer3D.set_active(is_watched)
	_started_msec = Time.get_ticks_msec()
	if _options.text("server"):
		client.url = _options.text("server")
	client.state_changed.connect(_on_state_changed)
	client.open({} if legacy_act_fallback else _hello())
	return ""


func decide() -> bool:
	client.poll()
	_tell_state()
	if _is_over():
		return false
	if client.state != RLClient.State.READY:
		return _go_without()
	if _session != client.session:
		_begin_session()
	if _rest_ticks > 0:
		_rest_ticks -= 1
		return false
	if not _is_asked:
		_ask()
	if not _hear():
		return false
	_command()
	return true


func conclude() -> void:
	if not _is_commanded:
		return
	_is_asked = false
	if training_mode:
		_speech.note()
		_has_results = true
	if is_watched and _matches[0].end != TagMatch.End.GOING_ON:
		_rest_ticks = REST_TICKS
	elif client.state == RLClient.State.READY:
		_ask()


func may_restart() -> bool:
	return client.state != RLClient.State.READY


func _hello() -> Dictionary:
	var rules: TagRules = game.rules
	var first: int = _matches[0].first_seeker
	return {
		"type": "hello",
		"protocol": RLClient.PROTOCOL,
		"encoding": "binary",
		"observation_version": rules.observation_version,
		"observation_size": rules.observation_size,
		"action_size": RLSpeech.ACTION_SIZE,
		"arenas": _matches.size(),
		"tick_rate": rules.ticks_per_second,
		"step_tick_interval": rules.decision_ticks,
		"seed": _matches[0].seed_value,
		"rules": rules.rule_set,
		"rewards": rules.reward_profile,
		"training": training_mode,
		"controlled": [_controlled[first], _controlled[1 - first]],
		"client": "Godot " + Engine.get_version_info().string,
	}


## End the game where its time is over, or where it has waited for a server in vain.
func _is_over() -> bool:
	if train_duration > 0.0 and _passed_sec(_started_msec) >= train_duration:
		print("estragon: the %s s of AI_TRAIN_DURATION are over" % train_duration)
		game.leave()
		return true
	if is_watched:
		return false
	var wait_sec: float = _options.real("server-wait")
	if client.refusal:
		game.leave(TagGame.BAD_INPUT, "%s refuses: %s" % [client.url, client.refusal])
		return true
	if client.absent_sec() >= wait_sec:
		var advice: String = "start one with `estragon serve`, or set --server-wait"
		var complaint: String = "no server at %s for %s s; %s" % [client.url, wait_sec, advice]
		game.leave(TagGame.BAD_INPUT, complaint)
		return true
	return false


## Bots play for whoever watches; headless there is nothing to play.
func _go_without() -> bool:
	if not is_watched:
		OS.delay_msec(IDLE_MSEC)
		return false
	_is_commanded = false
	_rest_ticks = 0
	return _players.decide()


func _begin_session() -> void:
	_session = client.session
	_is_asked = false
	_has_results = false
	if client.is_binary:
		_speech = RLFrames.new(_matches, _controlled)
	else:
		_speech = RLJson.new(_matches, _controlled, legacy_act_fallback)


func _ask() -> void:
	for index: int in _matches.size():
		if _matches[index].end != TagMatch.End.GOING_ON:
			game.begin_next(index)
	_seq = (_seq + 1) & 0xFFFFFFFF
	for message: Variant in _speech.ask(_seq, _has_results):
		client.send(message)
	_is_asked = true
	_asked_msec = Time.get_ticks_msec()


## Take what the server says; true when the actions are there.
func _hear() -> bool:
	while client.wait_for_packet(0.0 if is_watched else PATIENCE_SEC):
		if _speech.hear(client.take()):
			client.confirm()
			return true
		if _session != client.session:
			return false
		if _speech.error:
			client.drop("the server said " + _speech.error)
			return false
	if client.state == RLClient.State.READY and _passed_sec(_asked_msec) > step_timeout_sec:
		client.drop("no actions for decision %d in %s s" % [_seq, step_timeout_sec])
	return false


func _command() -> void:
	_is_commanded = true
	for index: int in _matches.size():
		_matches[index].command(_action(index, 0), _action(index, 1))


func _action(index: int, agent: int) -> PackedFloat32Array:
	if _controlled[agent]:
		return _speech.action(index, agent)
	return _players.action(index, agent)


## Say on the picture how things are.
func _tell_state() -> void:
	if not is_watched:
		return
	var waited_sec: float = _passed_sec(_asked_msec) if _is_asked else 0.0
	game.note = client.describe("bots play")
	if client.state == RLClient.State.READY and waited_sec > LONG_WAIT_SEC:
		game.note = "connected: waiting for actions since %d s" % int(waited_sec)


func _on_state_changed(state: RLClient.State) -> void:
	var is_ready: bool = state == RLClient.State.READY
	var player: String = "learner" if client.is_learning else "policy"
	for agent: int in 2:
		var role: String = "seeker" if agent == _matches[0].first_seeker else "hider"
		var is_servers: bool = is_ready and _controlled[agent]
		game.players[role] = player if is_servers else _players.name_of(role)
	if not _options.text("title"):
		game.title = "live training" if is_ready and client.is_learning else "live"
	if not is_watched and (is_ready or state == RLClient.State.WAITING):
		print("estragon: " + client.describe("the game waits"))


func _passed_sec(since_msec: int) -> float:
	return (Time.get_ticks_msec() - since_msec) / 1000.0
