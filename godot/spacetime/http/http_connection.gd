class_name HttpConnection
extends RefCounted
## One client: reads requests one after another, however they are cut into packets, and writes
## answers. Everything is bounded: sizes, waits, and what is kept for a client that does not read.

enum State { READING, ANSWERING, DRAINING, CLOSED }

const MOST_HEAD: int = 16384
const MOST_BODY: int = 1048576
## A request must arrive within this time of its first byte, and an answer be read.
const REQUEST_MSEC: int = 10000
const STRANGER_IDLE_MSEC: int = 15000
const KNOWN_IDLE_MSEC: int = 900000
## After an error the rest of the request is read and dropped, so that the client sees the answer.
const DRAIN_MSEC: int = 2000
const MOST_DRAINED: int = 16777216
const CR: int = 13
const LF: int = 10
const END_OF_HEAD: PackedByteArray = [CR, LF, CR, LF]
const LENGTH: String = "content-length: "
const DIGITS: String = "0123456789"
const MOST_DIGITS: int = 15
const REASONS: Dictionary[int, String] = {
	200: "OK",
	204: "No Content",
	400: "Bad Request",
	401: "Unauthorized",
	403: "Forbidden",
	404: "Not Found",
	405: "Method Not Allowed",
	408: "Request Timeout",
	409: "Conflict",
	413: "Payload Too Large",
	429: "Too Many Requests",
	503: "Service Unavailable",
}
const ERRORS: Dictionary[int, String] = {
	400: "bad_request",
	401: "unauthorized",
	403: "forbidden",
	404: "not_found",
	405: "method_not_allowed",
	408: "timeout",
	409: "conflict",
	413: "payload_too_large",
	429: "too_many_requests",
	503: "unavailable",
}

static var _header_line: RegEx = RegEx.create_from_string(
	"^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \\t]*([^\\x00-\\x08\\x0a-\\x1f\\x7f]*)$"
)

## The request to answer; null while there is none.
var request: HttpRequest
var state: HttpConnection.State = State.READING
## Whether a request carried the token.
var is_known: bool = false
## Since when it waits: for a request, for its rest, or for the answer.
var since_msec: int = Time.get_ticks_msec()

var _peer: StreamPeerTCP
var _received: PackedByteArray = []
var _unsent: PackedByteArray = []
## The head that came last, and what it says: clients send the same one again and again.
var _head: PackedByteArray = []
var _parsed: HttpRequest
## The head without its length, if that comes last: bodies differ in length.
var _head_start: PackedByteArray = []
var _body_size: int = -1
var _drained: int = 0
## Whether the rest of a request that cannot be read may still come.
var _is_refusing: bool = false


func _init(peer: StreamPeerTCP) -> void:
	_peer = peer
	_peer.set_no_delay(true)


func close() -> void:
	state = State.CLOSED
	_peer.disconnect_from_host()


## Read and write what is possible; whether there is a new request.
func poll() -> bool:
	if state == State.CLOSED:
		return false
	_peer.poll()
	if _peer.get_status() != StreamPeerTCP.STATUS_CONNECTED:
		close()
		return false
	if _unsent:
		_flush()
	match state:
		State.READING:
			_receive()
			if _received and _read():
				return true
			_check_time()
		State.DRAINING:
			_drain()
		State.ANSWERING:
			# Nothing is read: a client that sends on waits in its own buffer.
			pass
	return false


## Answer with JSON.
func answer(status: int, value: Variant, extra_head: String = "") -> void:
	var text: String = RLAddon.JsonCodec.text_of(value)
	send(status, "application/json", text.to_utf8_buffer(), extra_head)


func fail(status: int, message: String, details: Dictionary = {}, extra_head: String = "") -> void:
	var told: Dictionary = {"error": ERRORS[status], "message": message}
	if details:
		told["details"] = details
	answer(status, told, extra_head)


func send(status: int, kind: String, body: PackedByteArray, extra_head: String = "") -> void:
	if state == State.CLOSED:
		return
	var keeps: bool = request != null and request.keeps_alive
	var head: String = "HTTP/1.1 %d %s\r\n" % [status, REASONS[status]]
	if status != 204:
		head += "Content-Type: %s\r\nContent-Length: %d\r\n" % [kind, body.size()]
	head += extra_head + ("\r\n" if keeps else "Connection: close\r\n\r\n")
	var bytes: PackedByteArray = head.to_ascii_buffer()
	if request == null or request.method != "HEAD":
		bytes.append_array(body)
	_unsent.append_array(bytes)
	request = null
	since_msec = Time.get_ticks_msec()
	state = State.READING if keeps else State.DRAINING
	_flush()


func _flush() -> void:
	var result: Array = _peer.put_partial_data(_unsent)
	if result[0] != OK:
		close()
	elif result[1] == _unsent.size():
		_unsent = PackedByteArray()
	else:
		_unsent = _unsent.slice(result[1])
		if Time.get_ticks_msec() - since_msec > REQUEST_MSEC:
			close()


func _receive() -> void:
	var there: int = _peer.get_available_bytes()
	var room: int = MOST_HEAD + MOST_BODY - _received.size()
	# A client that does not read its answers is not read either.
	if there <= 0 or room <= 0 or _unsent:
		return
	var result: Array = _peer.get_partial_data(mini(there, room))
	if result[0] != OK:
		close()
	elif _received:
		_received.append_array(result[1])
	else:
		since_msec = Time.get_ticks_msec()
		_received = result[1]


## Read a request from what has arrived; whether it is whole.
func _read() -> bool:
	if _body_size < 0 and not _read_head():
		return false
	var size: int = _head.size() + _body_size
	if _received.size() < size:
		return false
	request = _parsed
	request.body = _received.slice(_head.size(), size)
	_received = _received.slice(size) if _received.size() > size else PackedByteArray()
	_body_size = -1
	state = State.ANSWERING
	return true


func _read_head() -> bool:
	if _head and _received.size() >= _head.size() and _received.slice(0, _head.size()) == _head:
		_body_size = _parsed.headers.get("content-length", "0").to_int()
		return true
	if _head_start and _received.slice(0, _head_start.size()) == _head_start and _read_length():
		return _expect_body()
	# Empty lines before a request are tolerated.
	while _received.size() >= 2 and _received[0] == CR and _received[1] == LF:
		_received = _received.slice(2)
	var end: int = _find_end()
	if end < 0:
		if _received.size() > MOST_HEAD:
			_refuse(413, "the head of the request has more than %d bytes" % MOST_HEAD)
		return false
	if end > MOST_HEAD:
		_refuse(413, "the head of the request has more than %d bytes" % MOST_HEAD)
		return false
	_head = _received.slice(0, end)
	_parsed = HttpRequest.new()
	var text: String = _head.get_string_from_ascii()
	var wrong: String = "a zero byte" if text.length() != end else _parse(text)
	if wrong:
		_head = PackedByteArray()
		_head_start = PackedByteArray()
		_refuse(400, "malformed request: " + wrong)
		return false
	return _expect_body()


## The head differs from the last one in its length alone; false if that is not so.
func _read_length() -> bool:
	var at: int = _head_start.size()
	var end: int = _received.find(CR, at)
	if end <= at or end > at + MOST_DIGITS or _received.slice(end, end + 4) != END_OF_HEAD:
		return false
	var length: String = _received.slice(at, end).get_string_from_ascii()
	if length.lstrip(DIGITS):
		return false
	_parsed.headers["content-length"] = length
	_head = _received.slice(0, end + 4)
	return true


## Where the head ends, after its empty line; -1 if it has not arrived.
func _find_end() -> int:
	var at: int = _received.find(CR)
	while at >= 0 and at + 3 < _received.size():
		if _received[at + 1] == LF and _received[at + 2] == CR and _received[at + 3] == LF:
			return at + 4
		at = _received.find(CR, at + 1)
	return -1


## Read the head; what is wrong with it, or "".
func _parse(head: String) -> String:
	var lines: PackedStringArray = head.left(-4).split("\r\n")
	var first: PackedStringArray = lines[0].split(" ")
	if first.size() != 3 or not first[0] or first[2] not in ["HTTP/1.1", "HTTP/1.0"]:
		return "expected METHOD /path HTTP/1.1"
	_parsed.method = first[0]
	for i: int in range(1, lines.size()):
		var found: RegExMatch = _header_line.search(lines[i])
		if not found:
			return "header line %d" % i
		var name: String = found.get_string(1).to_lower()
		if name in ["content-length", "authorization", "host"] and name in _parsed.headers:
			return "two headers %s" % name
		_parsed.headers[name] = found.get_string(2).strip_edges()
	_head_start = PackedByteArray()
	if lines[-1].left(LENGTH.length()).to_lower() == LENGTH:
		_head_start = _head.slice(0, _head.size() - 4 - lines[-1].length() + LENGTH.length())
	var connection: String = _parsed.headers.get("connection", "").to_lower()
	_parsed.keeps_alive = connection != "close" and first[2] == "HTTP/1.1"
	return _parse_target(first[1])


func _parse_target(target: String) -> String:
	if not target.begins_with("/"):
		return "the path must start with /"
	if "%00" in target:
		return "a zero byte in the path"
	_parsed.path = target.get_slice("?", 0)
	if "?" in target:
		for pair: String in target.substr(target.find("?") + 1).split("&", false):
			var key: String = pair.get_slice("=", 0).uri_decode()
			_parsed.query[key] = pair.substr(pair.find("=") + 1).uri_decode() if "=" in pair else ""
	return ""


func _expect_body() -> bool:
	var length: String = _parsed.headers.get("content-length", "0")
	if "transfer-encoding" in _parsed.headers:
		_refuse(400, "Transfer-Encoding is not supported; send Content-Length")
		return false
	if length.is_empty() or length.lstrip(DIGITS):
		_refuse(400, "malformed request: Content-Length")
		return false
	if length.length() > MOST_DIGITS or length.to_int() > MOST_BODY:
		_refuse(413, "the body has more than %d bytes" % MOST_BODY)
		return false
	_body_size = length.to_int()
	var expects: bool = _parsed.headers.get("expect", "").to_lower() == "100-continue"
	if expects and _received.size() < _head.size() + _body_size:
		_unsent.append_array("HTTP/1.1 100 Continue\r\n\r\n".to_ascii_buffer())
		_flush()
	return true


## Answer a request that cannot be read, and close.
func _refuse(status: int, message: String) -> void:
	request = null
	_is_refusing = true
	_body_size = -1
	_received = PackedByteArray()
	fail(status, message)


func _check_time() -> void:
	var waited: int = Time.get_ticks_msec() - since_msec
	if _received and waited > REQUEST_MSEC:
		_refuse(408, "the request did not arrive within %d s" % (REQUEST_MSEC / 1000))
	elif not _received and waited > (KNOWN_IDLE_MSEC if is_known else STRANGER_IDLE_MSEC):
		close()


func _drain() -> void:
	var there: int = _peer.get_available_bytes()
	if there > 0:
		_drained += there
		_peer.get_partial_data(there)
	elif not _is_refusing and not _unsent:
		close()
	if _drained > MOST_DRAINED or Time.get_ticks_msec() - since_msec > DRAIN_MSEC:
		close()
