class_name RLClient
extends Node
## The WebSocket to the server of live training: connects, introduces the game, connects again.
##
## docs/ws_protocol.md says what is spoken. Nothing happens before `open`; after it everything does
## in `poll` and `wait_for_packet`, by the wall clock.

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
## What has not come by then is not worth a look every few microseconds.
const PATIENT_USEC: int = 20000
const LONG_REST_USEC: int = 1000

## Where the server listens.
@export var url: String = "ws://127.0.0.1:8765"
## A server that has not answered `hello` by then is an older one.
@export_range(0.1, 60.0, 0.1, "suffix:s") var hello_timeout_sec: float = 2.0

var state: State = State.IDLE
## How often it got ready: whoever asks begins anew when this has changed.
var session: int = 0
## Whether the server agreed to binary frames.
var is_binary: bool = false
## Whether the server learns from what it is told.
var is_learning: bool = false
## Why the server did not want us, or "".
var refusal: String = ""

var _peer: WebSocketPeer
var _hello: Dictionary = {}
var _retry_sec: float = FIRST_RETRY_SEC
var _says: String = ""
## Why there is no connection.
var _reason: String = ""
var _state_began: int = 0
var _next_try: int = 0
## Since when no question was answered, in ms; -1 while all is well.
var _absent_since: int = -1


func _exit_tree() -> void:
	close()


## Connect, and stay connected. Without a `hello` the server is spoken to in plain JSON at once.
func open(hello: Dictionary) -> void:
	_hello = hello
	_absent_since = Time.get_ticks_msec()
	_connect()


## Tell the server that this is the end.
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


## Do what is due: try again, read what has come.
func poll() -> void:
	match state:
		State.WAITING:
			if Time.get_ticks_msec() >= _next_try:
				_connect()
		State.CONNECTING:
			_peer.poll()
			_look_whether_open()
		State.GREETING:
			_peer.poll()
			_look_for_hello()
		State.READY:
			_peer.poll()
			if _peer.get_ready_state() == WebSocketPeer.STATE_CLOSED:
				_fail(_how_it_closed())


## Send text or bytes, at once.
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
		drop("cannot send: %s" % error_string(sent) if open else _how_it_closed())
		return
	_peer.poll()


## Whether a message is there, waiting for it up to `timeout_sec`.
##
## Spins for a moment, then rests between looks: endless spinning would starve the server.
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


## The next message: String, or PackedByteArray. A `hello` that comes late is taken here.
func take() -> Variant:
	var bytes: PackedByteArray = _peer.get_packet()
	if not _peer.was_string_packet():
		return bytes
	var text: String = bytes.get_string_from_utf8()
	if not _says:
		_welcome(_read(text))
	return text


## The server answered as it should: next time try again soon.
func confirm() -> void:
	_absent_since = -1
	_retry_sec = FIRST_RETRY_SEC


## Give this connection up, and try again.
func drop(reason: String) -> void:
	_peer.close(DONE, reason.left(100))
	_peer.poll()
	_fail(reason)


## For how long no question has been answered, if there is no connection.
func absent_sec() -> float:
	if state == State.READY or _absent_since < 0:
		return 0.0
	return (Time.get_ticks_msec() - _absent_since) / 1000.0


## How things are, in a sentence; `meanwhile` is what happens without a server.
func describe(meanwhile: String) -> String:
	match state:
		State.IDLE:
			return "not connected"
		State.READY:
			return "connected: " + _says if _says else "connected: an older server, in JSON"
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


func _look_whether_open() -> void:
	match _peer.get_ready_state():
		WebSocketPeer.STATE_OPEN:
			_peer.set_no_delay(true)
			_says = ""
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


func _look_for_hello() -> void:
	if _peer.get_ready_state() == WebSocketPeer.STATE_CLOSED:
		if _peer.get_close_code() == UNFIT:
			refusal = _peer.get_close_reason()
		_fail(_how_it_closed())
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
		_welcome(answer)
	else:
		_become_ready()


## Take a `hello`, even one that comes late: from then on the server expects what it agreed to.
func _welcome(hello: Dictionary) -> void:
	if hello.get("type") != "hello":
		return
	is_binary = hello.get("encoding") == "binary"
	is_learning = hello.get("learning") == true
	_says = str(hello.get("says", hello.get("server", "a server")))
	_become_ready()


func _become_ready() -> void:
	session += 1
	refusal = ""
	_reason = ""
	_enter(State.READY)


func _fail(reason: String) -> void:
	_reason = reason
	_peer = null
	if _absent_since < 0:
		_absent_since = Time.get_ticks_msec()
	_next_try = Time.get_ticks_msec() + int(1000.0 * _retry_sec)
	_retry_sec = minf(2.0 * _retry_sec, LONGEST_RETRY_SEC)
	_enter(State.WAITING)


func _how_it_closed() -> String:
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
