class_name HttpTrainer
extends "res://addons/godot_rl_agents/wire/trainer.gd"
## The trainer at the other end of the HTTP API: takes its commands, and answers them.
##
## Episodes end as in the encoding `binary1`: with terminal observations, and the next episode has
## begun. `/rl/wire` carries that encoding itself.

const SPIN_USEC: int = 200
const REST_USEC: int = 10
const REST_SHARE: int = 8
const LONG_REST_USEC: int = 1000
const FIRST_MESSAGES: int = 2
const LARGEST_SEED: int = (1 << 53) - 1

var _api: HttpApi
## The request whose command is being executed.
var _pending: HttpConnection
var _is_compact: bool = false
var _is_for_all: bool = false
var _greetings: int = 0
## What is wrong with the message, or "".
var _wrong: String = ""
## What `/rl/observation` and `/rl/state` tell of the first agent.
var _episode: int = 0
var _step: int = 0
var _state: Dictionary = {"reward": 0.0, "done": false, "terminated": false, "truncated": false}
var _last_named: Dictionary = {}
var _told_infos: Array = []


func _init(sync: Sync, of: RLAddon.AgentRegistry, api: HttpApi) -> void:
	super(sync, of)
	_api = api
	_api.trainer = self


## The first agent as it is, for a game that HTTP does not control.
static func describe_first(connection: HttpConnection, agent: Node) -> void:
	var episode: RLAddon.Episode = agent._rl_episode
	match connection.request.path:
		"/rl/observation":
			connection.answer(200, named_obs(agent))
		"/rl/state":
			var step: int = agent.ticks / FeatureScene.TICKS_PER_STEP if "ticks" in agent else 0
			var told: Dictionary = {"episode": episode.number, "step": step, "reward": agent.reward}
			told.merge({"done": false, "terminated": false, "truncated": false})
			connection.answer(200, told.merged({"info": agent.get_info()}))
		_:
			connection.fail(409, "people play; POST /rl/reset takes control")


static func named_obs(agent: Node) -> Dictionary:
	return agent.get_named_obs() if agent.has_method(&"get_named_obs") else agent.get_obs()


func close() -> void:
	if _pending:
		_pending.fail(503, "the scene has changed")
		_pending = null
	if _api.trainer == self:
		_api.trainer = null


func receive(patience_usec: int) -> RLAddon.Trainer.Command:
	if _greetings < FIRST_MESSAGES:
		# Sync expects a handshake and a question about the agents first.
		_greetings += 1
		registry.is_open = true
		registry.introduce()
		return Command.HANDLED
	var start: int = Time.get_ticks_usec()
	while not _api.needs_frames:
		_api.poll()
		while _api.commands and not _api.needs_frames:
			var order: RLAddon.Trainer.Command = _take(_api.commands.pop_front())
			if order != Command.HANDLED:
				return order
		var waited: int = Time.get_ticks_usec() - start
		if waited >= patience_usec:
			break
		if waited > SPIN_USEC:
			OS.delay_usec(clampi(waited / REST_SHARE, REST_USEC, LONG_REST_USEC))
	return Command.NONE


func send_json(message: Dictionary) -> void:
	if _pending:
		_pending.answer(200, message)
		_pending = null


func answer(is_reset: bool) -> void:
	_note_state(is_reset)
	if not _pending:
		registry.finish_step()
		return
	match _pending.request.path:
		"/rl/wire":
			var frame: PackedByteArray = _binary.outcome(is_reset)
			if _binary.problem:
				_pending.fail(409, _binary.problem)
			else:
				_pending.send(200, "application/octet-stream", frame.slice(4))
		"/rl/action":
			_pending.answer(200, {"status": "applied", "episode": _episode, "step": _step})
		_:
			_pending.answer(200, _result(is_reset))
	_pending = null
	registry.finish_step()


func _take(connection: HttpConnection) -> RLAddon.Trainer.Command:
	_wrong = ""
	if registry.agents.is_empty():
		connection.fail(409, "the scene has no agents")
		return Command.HANDLED
	_pending = connection
	var order: RLAddon.Trainer.Command = _execute(connection.request)
	if registry.problem:
		_wrong = registry.problem
	if _wrong:
		connection.fail(400, _wrong)
		_pending = null
		return Command.HANDLED
	if order in [Command.HANDLED, Command.NONE, Command.CLOSE] and _pending:
		connection.send(204, "", PackedByteArray())
		_pending = null
	return Command.HANDLED if order == Command.NONE else order


func _execute(request: HttpRequest) -> RLAddon.Trainer.Command:
	if request.path == "/rl/wire":
		if request.body:
			return _read(request.body)
		_wrong = "the body is empty"
		return Command.NONE
	if request.method == "GET":
		_tell(request.path)
		return Command.HANDLED
	var said: Dictionary = {}
	if request.path == "/rl/action":
		said["action"] = request.json_value()
	else:
		said = request.json()
	_is_compact = _flag(said, "compact")
	_is_for_all = _flag(said, "all")
	_wrong = request.problem if request.problem else _wrong
	if _wrong:
		return Command.NONE
	return _reset(said) if request.path == "/rl/reset" else _step_by(said)


func _flag(said: Dictionary, key: String) -> bool:
	var value: Variant = said.get(key, false)
	if value is bool:
		return value
	_wrong = "%s: expected true or false" % key
	return false


func _tell(path: String) -> void:
	var first: RLAddon.Agent = registry.agents[0]
	match path:
		"/rl/info":
			send_json(_describe())
		"/rl/state":
			var told: Dictionary = {"episode": _episode, "step": _step}
			send_json(told.merged(_state).merged({"info": first.info()}))
		"/rl/observation":
			send_json(_last_named if _last_named else named_obs(first.node))


func _reset(said: Dictionary) -> RLAddon.Trainer.Command:
	var values: Variant = said.get("parameters", [])
	if values is Dictionary:
		values = registry.agents.map(func(_agent: Variant) -> Dictionary: return values.duplicate())
	_is_for_all = _is_for_all or registry.agents.size() > 1
	var game_seed: Variant = said.get("seed")
	if _is_whole(game_seed) and absf(game_seed) > LARGEST_SEED:
		_wrong = "seed: expected at most %d, because larger numbers lose digits" % LARGEST_SEED
		return Command.NONE
	return _handle({"type": "reset", "seed": game_seed, "parameters": values})


func _step_by(said: Dictionary) -> RLAddon.Trainer.Command:
	_is_for_all = "actions" in said
	var given: Variant = said.get("actions", [said.get("action")])
	var count: int = registry.agents.size()
	if not given is Array or given.size() != count:
		_wrong = 'expected actions for %d agents: {"actions": [...]}' % count
		return Command.NONE
	var actions: Array[Dictionary] = []
	for i: int in count:
		actions.append(_understand(registry.agents[i], given[i]))
		if _wrong:
			return Command.NONE
	for i: int in count:
		registry.agents[i].act(actions[i])
	return Command.ACT


func _understand(agent: RLAddon.Agent, said: Variant) -> Dictionary:
	if said is Dictionary and "type" in said and agent.node.has_method(&"action_of"):
		var action: Variant = agent.node.action_of(said)
		if action is Dictionary:
			return action
		_wrong = "action: %s" % action
		return {}
	if said is Array:
		said = _by_key(agent.spaces, said)
	var understood: Dictionary = _json._understand(agent, said)
	if _json.problem:
		_wrong = _json.problem
		_json.problem = ""
	return understood


## A flat list of numbers by the keys of the action space; null if its length is wrong.
func _by_key(spaces: RLAddon.Spaces, numbers: Array) -> Variant:
	if numbers.size() != spaces.action_width:
		return null
	var action: Dictionary = {}
	var at: int = 0
	for i: int in spaces.action_keys.size():
		var width: int = spaces.action_widths[i]
		var part: Array = numbers.slice(at, at + width)
		action[spaces.action_keys[i]] = part[0] if spaces.action_choices[i] else part
		at += width
	return action


func _note_state(is_reset: bool) -> void:
	if registry.agents.is_empty():
		return
	var episode: RLAddon.Episode = registry.agents[0].episode
	var has_ended: bool = not is_reset and episode.state != RLAddon.Episode.GOING
	_state["reward"] = 0.0 if is_reset else episode.reward
	_state["terminated"] = has_ended and episode.state == RLAddon.Episode.TERMINATED
	_state["truncated"] = has_ended and episode.state == RLAddon.Episode.TRUNCATED
	_step = 0 if is_reset or _state.get("done") else _step
	_step += 0 if is_reset else 1
	_state["done"] = has_ended
	_episode = episode.number - (1 if has_ended else 0)
	_last_named = _named_end(registry.agents[0]) if has_ended else {}


func _result(is_reset: bool) -> Dictionary:
	var seen: Array = []
	var ends: Array = []
	var rewards: Array = []
	var terminated: Array = []
	var truncated: Array = []
	var infos: Array = []
	for agent: RLAddon.Agent in registry.agents:
		var state: int = agent.episode.state
		var has_ended: bool = not is_reset and state != RLAddon.Episode.GOING
		seen.append(_flat(agent, agent.see()) if _is_compact else named_obs(agent.node))
		ends.append(_terminal_obs(agent) if has_ended else null)
		rewards.append(agent.episode.reward)
		terminated.append(has_ended and state == RLAddon.Episode.TERMINATED)
		truncated.append(has_ended and state == RLAddon.Episode.TRUNCATED)
		infos.append(agent.info())
		if is_reset or has_ended:
			infos[-1] = infos[-1].merged({"seed": agent.episode.episode_seed})
	var told_infos: Variant = infos
	if _is_compact:
		told_infos = null if infos == _told_infos else infos
		_told_infos = infos
	if _is_for_all:
		var all: Dictionary = {"observations": seen, "infos": told_infos}
		if is_reset:
			return {"status": "reset"}.merged(all)
		all.merge({"rewards": rewards, "terminated": terminated, "truncated": truncated})
		all["terminal_observations"] = ends
		return all
	var info: Variant = told_infos[0] if told_infos else null
	var one: Dictionary = {"observation": seen[0], "info": info}
	if is_reset:
		return {"status": "reset"}.merged(one)
	one.merge({"reward": rewards[0], "terminated": terminated[0], "truncated": truncated[0]})
	one["done"] = terminated[0] or truncated[0]
	if ends[0] != null:
		one["terminal_observation"] = ends[0]
	return one


func _terminal_obs(agent: RLAddon.Agent) -> Variant:
	return _flat(agent, agent.episode.last) if _is_compact else _named_end(agent)


static func _named_end(agent: RLAddon.Agent) -> Dictionary:
	var named: Dictionary = agent.node.last_named if "last_named" in agent.node else {}
	return named if named else agent.episode.last


func _flat(agent: RLAddon.Agent, seen: Dictionary) -> PackedFloat32Array:
	var numbers: PackedFloat32Array = []
	agent.spaces.pack_numbers(seen, numbers)
	return numbers


func _describe() -> Dictionary:
	var told: Dictionary = _json.env_info().merged(_binary.env_info())
	told.erase("type")
	told.erase("encoding")
	told["scene"] = _sync.get_tree().current_scene.scene_file_path
	told["action_repeat"] = _sync.action_repeat
	told["ticks_per_second"] = roundi(Engine.physics_ticks_per_second / Engine.time_scale)
	told["parameters"] = RLAddon.ParameterStore.all()
	return told


func _send_env_info() -> void:
	_is_offered_binary = true
	super()


func _fail(reason: String) -> void:
	_wrong = _wrong if _wrong else reason
