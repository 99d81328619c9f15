extends RefCounted
## The trainer at the other end: what it orders, and what it is answered.
##
## It begins in JSON as version 0.7 of the protocol has it; if it offers `binary1` that is spoken
## from the answer to `env_info` on. docs/godot_rl_protocol.md of Estragon says what is spoken.

## What a message asks for. NONE: there was no message; HEARD: it asks for nothing more.
enum Order { NONE, HEARD, ACT, RESET, CLOSE, LOST }

const BRACE: int = 0x7B
const MAJOR_VERSION: String = "0"
const DEEPEST_JSON: int = 32
const FOREVER: int = 1 << 62

## The agents that it controls.
var roster: RLAddon.Roster
## Whether it may be answered in `binary1`.
var allows_binary: bool = true
## Why there is no connection, or "".
var closed: String:
	get:
		return _socket.closed

var _sync: Sync
var _socket: RLAddon.Socket
var _json: RLAddon.JsonSpeech
var _binary: RLAddon.BinarySpeech
var _is_offered_binary: bool = false


func _init(sync: Sync, of: RLAddon.Roster) -> void:
	_sync = sync
	roster = of
	_socket = RLAddon.Socket.new(sync.stream)
	_json = RLAddon.JsonSpeech.new(sync, of)
	_binary = RLAddon.BinarySpeech.new(of)


func close() -> void:
	_socket.close()


## Take one message; NONE if there was none in time.
func hear(patience_usec: int) -> RLAddon.Trainer.Order:
	var order: RLAddon.Trainer.Order = Order.NONE
	if allows_binary:
		var frame: PackedByteArray = _socket.receive(patience_usec)
		if frame:
			order = _read(frame)
	else:
		var message: Variant = _sync._get_dict_json_message()
		if message is Dictionary:
			order = _obey(message)
	if roster.problem:
		_break_off(roster.problem)
	return Order.LOST if closed else order


## Wait for a message in JSON; null if there is no connection, or if it is something else.
func receive_json() -> Variant:
	var frame: PackedByteArray = _socket.receive(FOREVER)
	return _parse(frame) if frame else null


func send_json(message: Dictionary) -> void:
	_socket.send(RLAddon.JsonSpeech.frame_of(message))


## Report what came of the order.
func answer(is_reset: bool) -> void:
	if roster.is_open:
		var frame: PackedByteArray = _binary.outcome(is_reset)
		if _binary.problem:
			_break_off(_binary.problem)
		else:
			_socket.send(frame)
			# Last, since the trainer is computing already.
			roster.turn_page()
		return
	var message: Dictionary = _json.outcome(is_reset)
	if _json.problem:
		_break_off(_json.problem)
	else:
		_sync._send_dict_as_json_message(message)


func _read(frame: PackedByteArray) -> RLAddon.Trainer.Order:
	if frame[0] == BRACE:
		var message: Variant = _parse(frame)
		return _obey(message) if message is Dictionary else Order.NONE
	if not roster.is_open:
		_break_off("a frame that begins with %d is no JSON object" % frame[0])
	elif _binary.act(frame):
		return Order.ACT
	else:
		_break_off(_binary.problem)
	return Order.NONE


func _parse(frame: PackedByteArray) -> Variant:
	var json: JSON = JSON.new()
	if json.parse(frame.get_string_from_utf8()) == OK and json.data is Dictionary:
		return json.data
	_break_off("a frame is no JSON: %s" % json.get_error_message())
	return null


func _obey(message: Dictionary) -> RLAddon.Trainer.Order:
	match message.get("type"):
		"action" when not roster.is_open:
			if _json.act(message.get("action")):
				return Order.ACT
			_break_off(_json.problem)
		_ when _depth(message) > DEEPEST_JSON:
			_break_off("JSON is nested more than %d deep" % DEEPEST_JSON)
		"reset":
			return _read_reset(message.get("seed"))
		"close":
			return Order.CLOSE
		"handshake":
			_greet(message)
		"env_info":
			_introduce()
		"call":
			_call(message.get("method"))
		_:
			_break_off("no message has the type %s" % JSON.stringify(message.get("type")))
	return Order.HEARD


func _read_reset(game_seed: Variant) -> RLAddon.Trainer.Order:
	if game_seed != null and typeof(game_seed) not in [TYPE_INT, TYPE_FLOAT]:
		_break_off("the seed of a reset is no number: %s" % game_seed)
		return Order.NONE
	if game_seed != null:
		seed(int(game_seed))
		game_seed = int(game_seed)
	_sync._reset_agents(roster.request_reset(game_seed))
	return Order.RESET


func _greet(message: Dictionary) -> void:
	var version: String = str(message.get("major_version", MAJOR_VERSION))
	if version != MAJOR_VERSION:
		push_warning(
			(
				"Godot RL Agents: the trainer speaks version %s.%s, this game 0.7"
				% [version, message.get("minor_version")]
			)
		)
	var encodings: Variant = message.get("encodings")
	_is_offered_binary = (
		allows_binary and encodings is Array and RLAddon.BinarySpeech.NAME in encodings
	)


func _introduce() -> void:
	roster.is_open = _is_offered_binary
	roster.introduce()
	var info: Dictionary = _json.env_info()
	if roster.is_open:
		info.merge(_binary.env_info())
	_sync._send_dict_as_json_message(info)


func _call(method: Variant) -> void:
	if not method is String:
		_break_off("a call without a method")
		return
	var returns: Array = _sync._call_method_on_agents(method)
	_sync._send_dict_as_json_message({"type": "call", "returns": returns})


func _break_off(reason: String) -> void:
	_socket.close()
	_socket.closed = reason


static func _depth(value: Variant) -> int:
	var deepest: int = 0
	if value is Dictionary:
		value = value.values()
	if not value is Array:
		return 0
	for part: Variant in value:
		deepest = maxi(deepest, _depth(part))
	return deepest + 1
