extends RefCounted
## The connection to the trainer: receives commands, sends replies.
##
## Starts in JSON, version 0.7 of the protocol; if the trainer offers `binary1`, both sides switch
## after the reply to `env_info`. Specified in docs/godot_rl_protocol.md of Estragon.

## What a message asks for. NONE: no message; HANDLED: nothing more to do.
enum Command { NONE, HANDLED, ACT, RESET, CLOSE, LOST }

const BRACE: int = 0x7B
const MAJOR_VERSION: String = "0"
const DEEPEST_JSON: int = 32
const FOREVER: int = 1 << 62

## The agents it controls.
var registry: RLAddon.AgentRegistry
## Whether `binary1` may be used.
var allows_binary: bool = true
## Whether the trainer may set parameters.
var allows_parameters: bool = true
## Why the connection is closed, or "".
var closed: String:
	get:
		return _socket.closed

var _sync: Sync
var _socket: RLAddon.Socket
var _json: RLAddon.JsonCodec
var _binary: RLAddon.BinaryCodec
var _is_offered_binary: bool = false
var _is_offered_parameters: bool = false


func _init(sync: Sync, of: RLAddon.AgentRegistry) -> void:
	_sync = sync
	registry = of
	_socket = RLAddon.Socket.new(sync.stream)
	_json = RLAddon.JsonCodec.new(sync, of)
	_binary = RLAddon.BinaryCodec.new(of)


func close() -> void:
	_socket.close()


## Receive one message; NONE if it timed out.
func receive(patience_usec: int) -> RLAddon.Trainer.Command:
	var order: RLAddon.Trainer.Command = Command.NONE
	if allows_binary:
		var frame: PackedByteArray = _socket.receive(patience_usec)
		if frame:
			order = _read(frame)
	else:
		var message: Variant = _sync._get_dict_json_message()
		if message is Dictionary:
			order = _handle(message)
	if registry.problem:
		_fail(registry.problem)
	return Command.LOST if closed else order


## Wait for a message in JSON; null if there is no connection, or if it is something else.
func receive_json() -> Variant:
	var frame: PackedByteArray = _socket.receive(FOREVER)
	return _parse(frame) if frame else null


func send_json(message: Dictionary) -> void:
	_socket.send(RLAddon.JsonCodec.frame_of(message))


## Send the result of the last command.
func answer(is_reset: bool) -> void:
	if registry.is_open:
		var frame: PackedByteArray = _binary.outcome(is_reset)
		if _binary.problem:
			_fail(_binary.problem)
		else:
			_socket.send(frame)
			# Last, while the trainer is already computing.
			registry.finish_step()
		return
	var message: Dictionary = _json.outcome(is_reset)
	if _json.problem:
		_fail(_json.problem)
	else:
		_sync._send_dict_as_json_message(message)


func _read(frame: PackedByteArray) -> RLAddon.Trainer.Command:
	if frame[0] == BRACE:
		var message: Variant = _parse(frame)
		return _handle(message) if message is Dictionary else Command.NONE
	if not registry.is_open:
		_fail("invalid frame: starts with byte %d, expected a JSON object" % frame[0])
	elif _binary.act(frame):
		return Command.ACT
	else:
		_fail(_binary.problem)
	return Command.NONE


func _parse(frame: PackedByteArray) -> Variant:
	var json: JSON = JSON.new()
	if json.parse(frame.get_string_from_utf8()) == OK and json.data is Dictionary:
		return json.data
	_fail("invalid JSON: %s" % json.get_error_message())
	return null


func _handle(message: Dictionary) -> RLAddon.Trainer.Command:
	match message.get("type"):
		"action" when not registry.is_open:
			if _json.act(message.get("action")):
				return Command.ACT
			_fail(_json.problem)
		_ when _depth(message) > DEEPEST_JSON:
			_fail("JSON is nested more than %d deep" % DEEPEST_JSON)
		"reset":
			return _read_reset(message.get("seed"), message.get("parameters", []))
		"close":
			return Command.CLOSE
		"handshake":
			_handle_handshake(message)
		"env_info":
			_send_env_info()
		"parameters":
			_read_parameters(message)
		"call":
			_call(message.get("method"))
		_:
			_fail("unknown message type %s" % JSON.stringify(message.get("type")))
	return Command.HANDLED


func _read_reset(game_seed: Variant, parameters: Variant) -> RLAddon.Trainer.Command:
	if game_seed != null and not _is_whole(game_seed):
		_fail("invalid seed in reset, expected an integer: %s" % str(game_seed).left(80))
		return Command.NONE
	if not parameters is Array or parameters.size() not in [0, registry.agents.size()]:
		_fail("invalid parameters: expected a list for %d agents" % registry.agents.size())
		return Command.NONE
	if not parameters.all(_are_values):
		return Command.NONE
	if game_seed != null:
		seed(int(game_seed))
		game_seed = int(game_seed)
	_sync._reset_agents(registry.request_reset(game_seed, parameters))
	return Command.RESET


func _handle_handshake(message: Dictionary) -> void:
	var version: String = str(message.get("major_version", MAJOR_VERSION))
	if version != MAJOR_VERSION:
		push_warning(
			(
				"Godot RL Agents: the trainer uses protocol version %s.%s, this game 0.7"
				% [version, message.get("minor_version")]
			)
		)
	var offer: Variant = message.get("parameters")
	_is_offered_parameters = allows_parameters and offer is bool and offer
	var encodings: Variant = message.get("encodings")
	_is_offered_binary = (
		allows_binary and encodings is Array and RLAddon.BinaryCodec.NAME in encodings
	)


func _send_env_info() -> void:
	registry.is_open = _is_offered_binary
	registry.introduce()
	var info: Dictionary = _json.env_info()
	if registry.is_open:
		info.merge(_binary.env_info())
	if _is_offered_parameters:
		RLAddon.ParameterStore.declare(_sync.parameters)
		info["parameters"] = RLAddon.ParameterStore.all()
		info["agent_ids"] = registry.agents.map(_id_of)
	_sync._send_dict_as_json_message(info)


## The parameters of some agents' next episodes; without agents, a request to list them.
func _read_parameters(message: Dictionary) -> void:
	if "agents" not in message:
		var known: Array[Dictionary] = RLAddon.ParameterStore.all()
		_sync._send_dict_as_json_message({"type": "parameters", "parameters": known})
		return
	var given: Variant = message["agents"]
	var by_id: Dictionary[String, RLAddon.Agent] = {}
	for agent: RLAddon.Agent in registry.agents:
		by_id[str(agent.id)] = agent
	if not given is Dictionary or not by_id.has_all(given.keys()):
		_fail("invalid parameters: expected an object with ids of agents")
	elif given.values().all(_are_values):
		for id: String in given:
			by_id[id].episode.next_parameters = null if by_id[id].is_gone else given[id]


func _are_values(values: Variant) -> bool:
	var problem: String = RLAddon.ParameterStore.problem_of(values)
	if problem:
		_fail("invalid parameters: " + problem)
	return not problem


func _call(method: Variant) -> void:
	if not method is String:
		_fail("invalid call: method must be a string")
		return
	var returns: Array = _sync._call_method_on_agents(method)
	_sync._send_dict_as_json_message({"type": "call", "returns": returns})


func _fail(reason: String) -> void:
	_socket.close()
	_socket.closed = reason


static func _is_whole(value: Variant) -> bool:
	if typeof(value) not in [TYPE_INT, TYPE_FLOAT]:
		return false
	return absf(value) < 2.0 ** 63 and floorf(value) == value


static func _id_of(agent: RLAddon.Agent) -> int:
	return agent.id


static func _depth(value: Variant) -> int:
	var deepest: int = 0
	if value is Dictionary:
		value = value.values()
	if not value is Array:
		return 0
	for part: Variant in value:
		deepest = maxi(deepest, _depth(part))
	return deepest + 1
