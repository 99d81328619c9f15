class_name RLClient
extends Node
## The WebSocket client of live training: connects, sends `hello`, reconnects.
##
## The protocol is in docs/ws_protocol.md. Nothing happens before `open`; after it, all happens in
## `poll` and `wait_for_packet`, by the wall clock.

signal state_changed(state: State)

enum State { IDLE, WAITING, CONNECTING, GREETING, READY }

const PROTOCOL: int = 1
const CONNECT_SEC: float = 5.0
## The wait before the first retry; it doubles with each that fails, up to the longest.
const FIRST_RETRY_SEC: float = 0.25
const LONGEST_RETRY_SEC: float = 8.0
const GOODBYE_SEC: float = 0.25
const DONE: int = 1000
const UNFIT: int = 1008
const LARGEST_IN: int = 4194304
const LARGEST_OUT: int = 16777216
const MOST_PACKETS: int = 8192
const SPIN_USEC: int = 200
const REST_USEC: int = 50
## After this time, poll every millisecond only.
const PATIENT_USEC: int = 20000
const LONG_REST_USEC: int = 1000

## Address of the server.
@export var url: String = "ws://127.0.0.1:8765"
## A server that has not answered `hello` by then does not know it.
@export_range(0.1, 60.0, 0.1, "suffix:s") var hello_timeout_sec: float = 2.0

var state: State = State.IDLE
## Counts the connections; when it changes, requests start again.
var session: int = 0
## Whether the server agreed to binary frames.
var is_binary: bool = false
## Whether the server learns from the results.
var is_learning: bool = false
## Why the server refused the game, or "".
var refusal: String = ""

var _peer: WebSocketPeer
var _hello: Dictionary = {}
var _retry_sec: float = FIRST_RETRY_SEC
var _greeting: String = ""
## Why there is no connection.
var _reason: String = ""
var _state_began: int = 0
var _next_try: int = 0
## When the last request was answered, in ms, if the connection failed since; else -1.
var _absent_since_msec: int = -1


func _exit_tree() -> void:
	close()


## Connect, and stay connected. Without a `hello`, messages are plain JSON from the start.
func open(hello: Dictionary) -> void:
	_hello = hello
	_absent_since_msec = Time.get_ticks_msec()
	_connect()


## Close the connection.
func close() -> void:
	if not _peer:
		return
	_peer.close(DONE, "done")
	var start: int = Time.get_ticks_msec()
	while _peer.get_ready_state() != WebSocketPeer.STATE_CLOSED:
		_peer.poll()
		OS.delay_usec(LONG_REST_USEC)
		if Time.get_ticks_msec() - start > GOODBYE_SEC * 1000.0:
			break
	_peer = null
	_enter(State.IDLE)


## Reconnect if it is time, and read incoming messages.
func poll() -> void:
	match state:
		State.WAITING:
			if Time.get_ticks_msec() >= _next_try:
				_connect()
		State.CONNECTING:
			_peer.poll()
			_check_open()
		State.GREETING:
			_peer.poll()
			_check_hello()
		State.READY:
			_peer.poll()
			if _peer.get_ready_state() == WebSocketPeer.STATE_CLOSED:
				_fail(_close_reason())


## Send text or bytes immediately.
func send(message: Variant) -> void:
	if state != State.READY and state != State.GREETING:
		return
	var sent: Error
	if message is String:
		sent = _peer.send_text(message)
	else:
		sent = _peer.send(message)
	if sent != OK:
		var open: bool = _peer.get_ready_state() == WebSocketPeer.STATE_OPEN and sent != FAILED
		drop("cannot send: %s" % error_string(sent) if open else _close_reason())
		return
	_peer.poll()


## Whether a message is available, waiting for it up to `timeout_sec`.
##
## Spins briefly, then sleeps between polls: endless spinning would starve the server.
func wait_for_packet(timeout_sec: float) -> bool:
	var start: int = Time.get_ticks_usec()
	while true:
		poll()
		if state != State.READY:
			return false
		if _peer.get_available_packet_count() > 0:
			return true
		var waited: int = Time.get_ticks_usec() - start
		if waited >= timeout_sec * 1e6:
			return false
		if waited > SPIN_USEC:
			OS.delay_usec(REST_USEC if waited < PATIENT_USEC else LONG_REST_USEC)
	return false


## The next message, String or PackedByteArray. A late `hello` is handled here.
func take() -> Variant:
	var bytes: PackedByteArray = _peer.get_packet()
	if not _peer.was_string_packet():
		return bytes
	var text: String = bytes.get_string_from_utf8()
	if not _greeting:
		_accept_hello(_read(text))
	return text


## The server gave a valid answer: the next retry is soon.
func confirm() -> void:
	_absent_since_msec = -1
	_retry_sec = FIRST_RETRY_SEC


## Close this connection and reconnect.
func drop(reason: String) -> void:
	_peer.close(DONE, reason.left(100))
	_peer.poll()
	_fail(reason)


## How long no request has been answered, while there is no connection.
func absent_sec() -> float:
	if state == State.READY or _absent_since_msec < 0:
		return 0.0
	return (Time.get_ticks_msec() - _absent_since_msec) / 1000.0


## The state in one sentence; `meanwhile` says what happens without a server.
func describe(meanwhile: String) -> String:
	match state:
		State.IDLE:
			return "not connected"
		State.READY:
			return "connected: " + _greeting if _greeting else "connected: an older server, in JSON"
		State.WAITING:
			var wait_sec: int = ceili((_next_try - Time.get_ticks_msec()) / 1000.0)
			return "%s: %s; trying again in %d s" % [_reason, meanwhile, maxi(wait_sec, 1)]
	return "%s: %s; trying now" % [_reason, meanwhile] if _reason else "connecting to " + url


func _connect() -> void:
	_peer = WebSocketPeer.new()
	_peer.inbound_buffer_size = LARGEST_IN
	_peer.outbound_buffer_size = LARGEST_OUT
	_peer.max_queued_packets = MOST_PACKETS
	_enter(State.CONNECTING)
	if _peer.connect_to_url(url) != OK:
		_fail("cannot connect to " + url)


func _check_open() -> void:
	match _peer.get_ready_state():
		WebSocketPeer.STATE_OPEN:
			_peer.set_no_delay(true)
			_greeting = ""
			is_binary = false
			is_learning = false
			if _hello:
				_enter(State.GREETING)
				send(JSON.stringify(_hello))
			else:
				_become_ready()
		WebSocketPeer.STATE_CLOSED:
			_fail("no server")
		_:
			if _in_state_sec() > CONNECT_SEC:
				_fail("no server")


func _check_hello() -> void:
	if _peer.get_ready_state() == WebSocketPeer.STATE_CLOSED:
		if _peer.get_close_code() == UNFIT:
			refusal = _peer.get_close_reason()
		_fail(_close_reason())
	elif _peer.get_available_packet_count() > 0:
		_read_answer(_read(_peer.get_packet().get_string_from_utf8()))
	elif _in_state_sec() > hello_timeout_sec:
		_become_ready()


func _read(text: String) -> Dictionary:
	var json: JSON = JSON.new()
	return json.data if json.parse(text) == OK and json.data is Dictionary else {}


## An older server answers `hello` with an echo, or with something else.
func _read_answer(answer: Dictionary) -> void:
	if answer.get("type") == "error":
		refusal = str(answer.get("error"))
		drop("the server refuses: " + refusal)
	elif answer.get("type") == "hello":
		_accept_hello(answer)
	else:
		_become_ready()


## Accept a `hello`, even a late one: from then on the server expects what it agreed to.
func _accept_hello(hello: Dictionary) -> void:
	if hello.get("type") != "hello":
		return
	is_binary = hello.get("encoding") == "binary"
	is_learning = hello.get("learning") == true
	_greeting = str(hello.get("says", hello.get("server", "a server")))
	_become_ready()


func _become_ready() -> void:
	session += 1
	refusal = ""
	_reason = ""
	_enter(State.READY)


func _fail(reason: String) -> void:
	_reason = reason
	_peer = null
	if _absent_since_msec < 0:
		_absent_since_msec = Time.get_ticks_msec()
	_next_try = Time.get_ticks_msec() + int(1000.0 * _retry_sec)
	_retry_sec = minf(2.0 * _retry_sec, LONGEST_RETRY_SEC)
	_enter(State.WAITING)


func _close_reason() -> String:
	var code: int = _peer.get_close_code()
	if code < 0:
		return "connection lost"
	return ("connection closed (%d %s" % [code, _peer.get_close_reason()]).strip_edges() + ")"


func _enter(new_state: State) -> void:
	state = new_state
	_state_began = Time.get_ticks_msec()
	state_changed.emit(state)


func _in_state_sec() -> float:
	return (Time.get_ticks_msec() - _state_began) / 1000.0
