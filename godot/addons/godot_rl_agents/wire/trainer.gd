extends RefCounted
## The trainer at the other end: what it orders, and what it is answered.
##
## It begins in JSON as version 0.7 of the protocol has it; if it offers `binary1` that is spoken
## from the answer to `env_info` on. docs/godot_rl_protocol.md of Estragon says what is spoken.

enum Order { NONE, ACT, RESET, CLOSE, LOST }

const BRACE: int = 0x7B
const MAJOR_VERSION: String = "0"
const DEEPEST_JSON: int = 32
const FOREVER: int = 1 << 62

## Whom it plays.
var roster: RLAddon.Roster
## Why there is no connection, or "".
var closed: String:
	get:
		return _socket.closed

var _socket: RLAddon.Socket = RLAddon.Socket.new()
var _json: RLAddon.JsonSpeech
var _binary: RLAddon.BinarySpeech
var _is_offered_binary: bool = false
## Whether the order that is carried out is a reset.
var _is_reset: bool = false


func _init(plays: RLAddon.Roster) -> void:
	roster = plays
	_json = RLAddon.JsonSpeech.new(plays)
	_binary = RLAddon.BinarySpeech.new(plays)


func open(port: int) -> bool:
	return _socket.open(port)


func close() -> void:
	_socket.close()


## The next thing that the game must do; NONE if nothing was said in time.
func next_order(patience_usec: int = FOREVER) -> RLAddon.Trainer.Order:
	var start: int = Time.get_ticks_usec()
	while true:
		var left: int = patience_usec - (Time.get_ticks_usec() - start)
		var frame: PackedByteArray = _socket.receive(maxi(left, 0))
		if closed:
			return Order.LOST
		if not frame:
			return Order.NONE
		var order: RLAddon.Trainer.Order = _read(frame)
		if roster.problem:
			_break_off(roster.problem)
		if closed:
			return Order.LOST
		if order != Order.NONE:
			_is_reset = order == Order.RESET
			return order
	return Order.NONE


## Say what came of the order.
func answer() -> void:
	var speech: RefCounted = _binary if roster.is_open else _json
	var frame: PackedByteArray = speech.outcome(_is_reset)
	if speech.problem:
		_break_off(speech.problem)
	else:
		_socket.send(frame)
		# Last, since the trainer thinks already.
		if roster.is_open:
			roster.turn_page()


func _read(frame: PackedByteArray) -> RLAddon.Trainer.Order:
	if frame[0] == BRACE:
		return _read_json(frame.get_string_from_utf8())
	if not roster.is_open:
		_break_off("a frame that begins with %d is no JSON object" % frame[0])
	elif _binary.act(frame):
		return Order.ACT
	else:
		_break_off(_binary.problem)
	return Order.NONE


func _read_json(text: String) -> RLAddon.Trainer.Order:
	var json: JSON = JSON.new()
	if json.parse(text) != OK or not json.data is Dictionary:
		_break_off("a frame is no JSON: %s" % json.get_error_message())
		return Order.NONE
	var message: Dictionary = json.data
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
	return Order.NONE


func _read_reset(game_seed: Variant) -> RLAddon.Trainer.Order:
	if game_seed != null and typeof(game_seed) not in [TYPE_INT, TYPE_FLOAT]:
		_break_off("the seed of a reset is no number: %s" % game_seed)
		return Order.NONE
	if game_seed != null:
		seed(int(game_seed))
		game_seed = int(game_seed)
	roster.request_reset(game_seed)
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
	_is_offered_binary = encodings is Array and RLAddon.BinarySpeech.NAME in encodings


func _introduce() -> void:
	roster.is_open = _is_offered_binary
	roster.introduce()
	var info: Dictionary = _json.env_info()
	if roster.is_open:
		info.merge(_binary.env_info())
	_socket.send(RLAddon.JsonSpeech.frame_of(info))


func _call(method: Variant) -> void:
	if not method is String:
		_break_off("a call without a method")
		return
	var returns: Array = []
	for agent: RLAddon.Agent in roster.agents:
		var can: bool = not agent.is_gone and agent.node.has_method(method)
		if not can and not agent.is_gone:
			push_error("Godot RL Agents: %s has no method %s" % [agent.name, method])
		returns.append(agent.node.call(method) if can else null)
	_socket.send(RLAddon.JsonSpeech.frame_of({"type": "call", "returns": returns}))


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
