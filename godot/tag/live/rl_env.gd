@tool
class_name RLEnv
extends TagDriver
## Live play: a server sends the actions and receives the results, in lockstep.
##
## Each decision is one request for all arenas, and nothing moves before the reply. Headless, the
## game waits for it; in a window it keeps drawing. Without a server, bots and a person play.
## Numbers that are not edited follow rules.json, and the Inspector shows them: see RLSettings.

## How long the headless game waits for a reply before it checks its time limit.
const PATIENCE_SEC: float = 0.25
const IDLE_MSEC: int = 5
## A longer wait is shown in the HUD.
const LONG_WAIT_SEC: float = 1.0
## In a window: the pause after an episode of the first arena.
const REST_TICKS: int = 60
const MEANWHILE: String = "playing without it"
const HINT: String = "estragon: no server at %s; `estragon serve` starts one, and its policy plays"
## Second names of exports.
const ALIASES: Dictionary[String, String] = {
	"tag_bonus": "win_bonus",
	"progress_reward_scale": "distance_reward_scale",
}

## The connection to the server.
@export var client: RLClient
## Whether the server plays both agents; if not, only the first.
@export var control_all_agents: bool = true
## Whether the server receives the results of its actions, so that it can learn.
@export var training_mode: bool = false
## Whether the first agent starts as the seeker; if not, the second does.
@export var ai_is_it: bool = true
## Length of a decision.
@export_range(1, 60, 1, "suffix:ticks") var step_tick_interval: int = -1:
	get:
		return _settings.number("step_tick_interval")
	set(value):
		_settings.edit("step_tick_interval", value)
## Length of an episode.
@export_range(0.0, 600.0, 0.1, "or_greater", "suffix:s") var time_limit_sec: float = NAN:
	get:
		return _settings.number("time_limit_sec")
	set(value):
		_settings.edit("time_limit_sec", value)
## Whether to log every episode into the folder `trajectories`.
@export var log_trajectories: bool = false
## Use plain JSON, one agent per message, for older Python bridges.
@export var legacy_act_fallback: bool = false

@export_group("Rewards")
## The reward profile of rules.json for the numbers below. A number that you edit keeps its value
## whatever the profile; its revert arrow restores the profile's value.
@export var rewards: String = "":
	get:
		return _settings.reward_profile()
	set(value):
		_settings.rewards = value
## Reward for every metre that the agents come closer: to the seeker, and from the hider.
@export var distance_reward_scale: float = NAN:
	get:
		return _settings.number("distance_reward_scale")
	set(value):
		_settings.edit("distance_reward_scale", value)
## The same as `distance_reward_scale`.
@export var progress_reward_scale: float = NAN:
	get:
		return _settings.number("distance_reward_scale")
	set(value):
		_settings.edit("distance_reward_scale", value)
## Reward of the seeker for every decision; 0 or less.
@export var seeker_time_penalty: float = NAN:
	get:
		return _settings.number("seeker_time_penalty")
	set(value):
		_settings.edit("seeker_time_penalty", value)
## Reward of the hider for every decision.
@export var runner_survival_bonus: float = NAN:
	get:
		return _settings.number("runner_survival_bonus")
	set(value):
		_settings.edit("runner_survival_bonus", value)
## Reward of the seeker for a tag.
@export var win_bonus: float = NAN:
	get:
		return _settings.number("win_bonus")
	set(value):
		_settings.edit("win_bonus", value)
## The same as `win_bonus`.
@export var tag_bonus: float = NAN:
	get:
		return _settings.number("win_bonus")
	set(value):
		_settings.edit("win_bonus", value)
## Reward of the hider when the time is up.
@export var timeout_hider_bonus: float = NAN:
	get:
		return _settings.number("timeout_hider_bonus")
	set(value):
		_settings.edit("timeout_hider_bonus", value)
## Penalty of the seeker when the time is up.
@export var timeout_seeker_penalty: float = NAN:
	get:
		return _settings.number("timeout_seeker_penalty")
	set(value):
		_settings.edit("timeout_seeker_penalty", value)
## Reward of the hider for every decision on high ground.
@export var high_ground_bonus: float = NAN:
	get:
		return _settings.number("high_ground_bonus")
	set(value):
		_settings.edit("high_ground_bonus", value)
## Reward of the seeker for a jump near the hider.
@export var jump_near_bonus: float = NAN:
	get:
		return _settings.number("jump_near_bonus")
	set(value):
		_settings.edit("jump_near_bonus", value)

## Wall-clock seconds after which the game quits; 0 for never.
var train_duration: float:
	get:
		return _settings.number("train_duration")
## Environment overrides by the name of the export; the process's own unless set before.
var variables: Dictionary[String, String] = RLSettings.of_process()
## How long a reply may take before the connection is closed.
var step_timeout_sec: float = 30.0
## Whether the game is displayed, so that no frame may wait for the server.
var is_watched: bool = DisplayServer.get_name() != "headless"

var _settings: RLSettings = RLSettings.new()
var _options: TagOptions
## Plays the agents that the server does not, and all of them without a server.
var _players: TagPlayers
var _codec: RLCodec
var _matches: Array[TagMatch] = []
var _controlled: Array[bool] = [true, true]
var _session: int = 0
var _seq: int = -1
var _is_requested: bool = false
var _requested_msec: int = 0
var _has_results: bool = false
## Whether the current decision came from the server.
var _is_commanded: bool = false
var _rest_ticks: int = 0
var _started_msec: int = 0
var _has_hinted: bool = false
## The connection whose loss was printed.
var _lost_session: int = -1


## Save only what was edited, so that everything else follows rules.json.
func _validate_property(property: Dictionary) -> void:
	if property.name == "rewards":
		property.hint = PROPERTY_HINT_ENUM
		property.hint_string = ",".join(_settings.reward_profiles())
	elif not property.name in RLSettings.numbers and not property.name in ALIASES:
		return
	if property.name in ALIASES or not _is_edited(property.name):
		property.usage &= ~PROPERTY_USAGE_STORAGE


func _property_can_revert(property: StringName) -> bool:
	return property == &"rewards" or ALIASES.has(property) or property in RLSettings.numbers


func _property_get_revert(property: StringName) -> Variant:
	if not _is_edited(property):
		return get(property)
	return "" if property == &"rewards" else RLSettings.unset(ALIASES.get(property, property))


## Apply the environment to the rules; returns the problem, or "".
func prepare(options: TagOptions, rules: TagRules) -> String:
	_options = options
	var problem: String = _settings.take(self, variables)
	return problem if problem else _settings.adjust(rules, options.text("rewards"))


## Whether a server may play at all.
func is_wanted() -> bool:
	return _is_expected() or _options.finds_server


## Whether a server was requested; if not, it plays if there is one.
func _is_expected() -> bool:
	return training_mode or _options.is_on("live")


func start(played: TagGame) -> String:
	super(played)
	if not client:
		return "RLEnv: set its client, the RLClient that connects to the server"
	for arena: TagArena in game.arenas:
		_matches.append(arena.game)
	_controlled = [true, control_all_agents]
	if _is_expected():
		game.person_plays = "nobody"
	elif not control_all_agents and game.person_plays != "nobody":
		game.person_plays = "hider" if _matches[0].first_seeker == 0 else "seeker"
	_players = TagPlayers.new()
	add_child(_players)
	_players.start(game)
	# The match does not read the bodies; without a display their physics only costs time.
	PhysicsServer3D.set_active(is_watched)
	_started_msec = Time.get_ticks_msec()
	if _options.text("server"):
		client.url = _options.text("server")
	client.state_changed.connect(_on_state_changed)
	client.open({} if legacy_act_fallback else _hello())
	return ""


func decide() -> bool:
	client.poll()
	_show_state()
	if _is_over():
		return false
	if client.state != RLClient.State.READY:
		return _play_without_server()
	if _session != client.session:
		_begin_session()
	if _rest_ticks > 0:
		_rest_ticks -= 1
		return false
	if not _is_requested:
		_request_actions()
	if not _receive_actions():
		return false
	_command()
	return true


func conclude() -> void:
	if not _is_commanded:
		return
	_is_requested = false
	if training_mode:
		_codec.record_results()
		_has_results = true
	if is_watched and _matches[0].end != TagMatch.End.GOING_ON:
		_rest_ticks = REST_TICKS
	elif client.state == RLClient.State.READY:
		_request_actions()


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
		"action_size": RLCodec.ACTION_SIZE,
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


## Quit if the time is over, or if no server was found in time.
func _is_over() -> bool:
	if train_duration > 0.0 and _passed_sec(_started_msec) >= train_duration:
		print("estragon: the %s s of AI_TRAIN_DURATION are over" % train_duration)
		game.quit()
		return true
	if is_watched or not _is_expected():
		return false
	var wait_sec: float = _options.real("server-wait")
	if client.refusal:
		game.quit("%s refuses: %s" % [client.url, client.refusal])
		return true
	if client.absent_sec() >= wait_sec:
		var advice: String = "start one with `estragon serve`, or set --server-wait"
		var problem: String = "no server at %s for %s s; %s" % [client.url, wait_sec, advice]
		game.quit(problem)
		return true
	return false


## Bots and a person play; headless, the game waits for a server that was requested.
func _play_without_server() -> bool:
	if not is_watched and _is_expected():
		OS.delay_msec(IDLE_MSEC)
		return false
	_is_commanded = false
	_rest_ticks = 0
	return _players.decide()


func _begin_session() -> void:
	_session = client.session
	_is_requested = false
	_has_results = false
	if client.is_binary:
		_codec = RLBinaryCodec.new(_matches, _controlled)
	else:
		_codec = RLJsonCodec.new(_matches, _controlled, legacy_act_fallback)


func _request_actions() -> void:
	for index: int in _matches.size():
		if _matches[index].end != TagMatch.End.GOING_ON:
			game.begin_next(index)
	_seq = (_seq + 1) & 0xFFFFFFFF
	for message: Variant in _codec.encode_request(_seq, _has_results):
		client.send(message)
	_is_requested = true
	_requested_msec = Time.get_ticks_msec()


## Read the server's messages; true when the actions are complete.
func _receive_actions() -> bool:
	while client.wait_for_packet(0.0 if is_watched else PATIENCE_SEC):
		if _codec.decode_reply(client.take()):
			client.confirm()
			return true
		if _session != client.session:
			return false
		if _codec.error:
			client.drop("the server said " + _codec.error)
			return false
	if client.state == RLClient.State.READY and _passed_sec(_requested_msec) > step_timeout_sec:
		client.drop("no actions for decision %d in %s s" % [_seq, step_timeout_sec])
	return false


func _command() -> void:
	_is_commanded = true
	for index: int in _matches.size():
		_matches[index].command(_action(index, 0), _action(index, 1))


func _action(index: int, agent: int) -> PackedFloat32Array:
	if _controlled[agent]:
		return _codec.action(index, agent)
	return _players.action(index, agent)


## Show the state of the connection, unless no server was requested or found.
func _show_state() -> void:
	if not is_watched:
		return
	if not _is_expected() and client.session == 0:
		return
	var waited_sec: float = _passed_sec(_requested_msec) if _is_requested else 0.0
	game.note = client.describe("bots play" if _is_expected() else MEANWHILE)
	if client.state == RLClient.State.READY and waited_sec > LONG_WAIT_SEC:
		game.note = "connected: waiting for actions since %d s" % int(waited_sec)


func _on_state_changed(state: RLClient.State) -> void:
	var is_ready: bool = state == RLClient.State.READY
	var player: String = "learner" if client.is_learning else "policy"
	var before: Dictionary[String, String] = game.players.duplicate()
	for agent: int in 2:
		var role: String = "seeker" if agent == _matches[0].first_seeker else "hider"
		var is_servers: bool = is_ready and _controlled[agent]
		game.players[role] = player if is_servers else _players.name_of(role)
	if game.players != before:
		game.players_changed.emit()
	if not _options.text("title"):
		game.title = "live training" if is_ready and client.is_learning else "live"
		if not is_ready and not _is_expected():
			game.title = ""
	if is_ready or state == RLClient.State.WAITING:
		_print_state(is_ready)


## A game without a requested server prints once how to start one, then each change.
func _print_state(is_ready: bool) -> void:
	if _is_expected():
		if not is_watched:
			print("estragon: " + client.describe("the game waits"))
		return
	if not is_ready and client.session == 0 and not client.refusal:
		if not _has_hinted:
			print(HINT % client.url)
		_has_hinted = true
	elif is_ready or _lost_session != client.session:
		_lost_session = -1 if is_ready else client.session
		print("estragon: " + client.describe(MEANWHILE))


func _is_edited(property: String) -> bool:
	if property == "rewards":
		return _settings.rewards != ""
	return _settings.is_edited(ALIASES.get(property, property))


func _passed_sec(since_msec: int) -> float:
	return (Time.get_ticks_msec() - since_msec) / 1000.0
