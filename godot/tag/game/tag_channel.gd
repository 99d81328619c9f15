class_name TagChannel
extends RefCounted
## A local TCP channel to Python, which sends actions and receives the results.
##
## Frames both ways: u32 length, then the payload. The game starts with a JSON hello. A frame from
## Python is one letter and its arguments:
##   R, u32 episode, u32 arena   start that episode; arenas are numbered from `arena`
##   S, u8 restart, actions      play a decision; restart: start the next episode where one ended
##   B, u8 bot, observations     request a bot's actions
## The answer to R and S: observations, rewards, terms (float32); ends, winners, seekers (int8);
## ticks, episodes (int32); distances and the numbers of both agents of every arena (float64); then
## the last observations of the episodes that ended and were restarted.

const HOST: String = "127.0.0.1"
const CONNECT_SEC: float = 20.0
const LARGEST_FRAME: int = 16777216
const SPIN_USEC: int = 200
const REST_USEC: int = 40

## Why the channel is closed, or "".
var closed: String = ""

var _peer: StreamPeerTCP = StreamPeerTCP.new()


## Connect to Python; false if it does not listen.
func open(port: int) -> bool:
	if _peer.connect_to_host(HOST, port) != OK:
		closed = "cannot connect to %s:%d" % [HOST, port]
		return false
	var deadline: int = Time.get_ticks_usec() + int(CONNECT_SEC * 1e6)
	while _peer.get_status() == StreamPeerTCP.STATUS_CONNECTING:
		_peer.poll()
		OS.delay_usec(1000)
		if Time.get_ticks_usec() > deadline:
			break
	if _peer.get_status() != StreamPeerTCP.STATUS_CONNECTED:
		closed = "nobody listens on %s:%d" % [HOST, port]
		return false
	_peer.set_no_delay(true)
	return true


func send(payload: PackedByteArray) -> void:
	_peer.put_u32(payload.size())
	if _peer.put_data(payload) != OK:
		closed = "Python has gone"


## Wait for the next frame; empty when the channel is closed.
func receive() -> PackedByteArray:
	if not _wait_for(4):
		return PackedByteArray()
	var length: int = _peer.get_u32()
	if length < 1 or length > LARGEST_FRAME:
		closed = "a frame of %d bytes" % length
		return PackedByteArray()
	var result: Array = _peer.get_data(length)
	if result[0] != OK:
		closed = "Python has gone"
		return PackedByteArray()
	return result[1]


## Spins briefly, then sleeps between polls: endless spinning would starve Python.
func _wait_for(bytes: int) -> bool:
	var start: int = Time.get_ticks_usec()
	while true:
		_peer.poll()
		if _peer.get_available_bytes() >= bytes:
			return true
		if _peer.get_status() != StreamPeerTCP.STATUS_CONNECTED:
			closed = "Python has gone"
			return false
		if Time.get_ticks_usec() - start > SPIN_USEC:
			OS.delay_usec(REST_USEC)
	return false
