extends RefCounted
## Frames over TCP: u32 length, then that many bytes.

const HOST: String = "127.0.0.1"
const CONNECT_SEC: float = 5.0
const LARGEST_FRAME: int = 268435456
const SPIN_USEC: int = 200
const REST_USEC: int = 10
## The longer it waits, the less often it looks: a rest is this part of the wait so far.
const REST_SHARE: int = 8
const LONG_REST_USEC: int = 1000

## Why the connection is closed, or "".
var closed: String = ""

var _peer: StreamPeerTCP
## The length of the frame that is coming; -1 before it is known.
var _length: int = -1
var _frame: PackedByteArray = []


func _init(peer: StreamPeerTCP) -> void:
	_peer = peer


## A connection to this port; check its status.
static func connected_to(port: int) -> StreamPeerTCP:
	var peer: StreamPeerTCP = StreamPeerTCP.new()
	var deadline: int = Time.get_ticks_usec() + int(CONNECT_SEC * 1e6)
	if peer.connect_to_host(HOST, port) == OK:
		while peer.get_status() == StreamPeerTCP.STATUS_CONNECTING:
			peer.poll()
			if Time.get_ticks_usec() > deadline:
				break
			OS.delay_usec(REST_USEC)
	if peer.get_status() == StreamPeerTCP.STATUS_CONNECTED:
		peer.set_no_delay(true)
	return peer


func close() -> void:
	closed = closed if closed else "closed"
	_peer.disconnect_from_host()


## Send a frame whose first 4 bytes are kept for its length.
func send(frame: PackedByteArray) -> void:
	if frame.size() - 4 > LARGEST_FRAME:
		closed = "reply too large: %d bytes" % (frame.size() - 4)
		return
	frame.encode_u32(0, frame.size() - 4)
	if _peer.put_data(frame) != OK:
		closed = "the trainer closed the connection"


## Wait for the next frame; empty if none came in time, or if the connection is closed.
##
## Spins for a moment, then rests between looks: endless spinning would starve the trainer.
func receive(patience_usec: int) -> PackedByteArray:
	var start: int = Time.get_ticks_usec()
	while not closed:
		_peer.poll()
		if _take():
			var frame: PackedByteArray = _frame
			_frame = PackedByteArray()
			_length = -1
			return frame
		if _peer.get_status() != StreamPeerTCP.STATUS_CONNECTED:
			closed = closed if closed else "the trainer closed the connection"
		var waited: int = Time.get_ticks_usec() - start
		if waited >= patience_usec:
			break
		if waited > SPIN_USEC:
			OS.delay_usec(clampi(waited / REST_SHARE, REST_USEC, LONG_REST_USEC))
	return PackedByteArray()


## Take what is there; whether a frame is whole.
func _take() -> bool:
	var there: int = _peer.get_available_bytes()
	if _length < 0 and there >= 4:
		_length = _peer.get_u32()
		there -= 4
		if _length < 1 or _length > LARGEST_FRAME:
			closed = "invalid frame length: %d bytes" % _length
			return false
	if _length < 0 or there <= 0:
		return false
	var result: Array = _peer.get_data(mini(there, _length - _frame.size()))
	if result[0] != OK:
		closed = "the trainer closed the connection"
		return false
	if _frame:
		_frame.append_array(result[1])
	else:
		_frame = result[1]
	return _frame.size() == _length
