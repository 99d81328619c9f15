class_name FakeServer
extends Node
## A server of live training inside the test: one client, whose messages it keeps.

var port: int
## What the client said, oldest first: String or PackedByteArray.
var heard: Array = []
## Counts the connections.
var clients: int = 0

var _listener: TCPServer = TCPServer.new()
var _peer: WebSocketPeer


func _init() -> void:
	_listener.listen(0, "127.0.0.1")
	port = _listener.get_local_port()


func _physics_process(_delta: float) -> void:
	poll()


func poll() -> void:
	if _listener.is_connection_available():
		_peer = WebSocketPeer.new()
		_peer.inbound_buffer_size = RLClient.LARGEST_OUT
		_peer.accept_stream(_listener.take_connection())
		clients += 1
	if not _peer:
		return
	_peer.poll()
	while _peer.get_available_packet_count() > 0:
		var bytes: PackedByteArray = _peer.get_packet()
		heard.append(bytes.get_string_from_utf8() if _peer.was_string_packet() else bytes)


func url() -> String:
	return "ws://127.0.0.1:%d" % port


func say(message: Variant) -> void:
	if message is Dictionary:
		_peer.send_text(JSON.stringify(message))
	else:
		_peer.send(message)
	_peer.poll()


## Agree to binary frames.
func welcome(encoding: String = "binary") -> void:
	say(
		{
			"type": "hello",
			"encoding": encoding,
			"learning": true,
			"says": "learning, 7 steps so far"
		}
	)


## Answer the last decision, everybody running the same way.
func answer(x: float, z: float) -> void:
	var frame: PackedByteArray = heard.back().slice(0, RLBinaryCodec.HEADER_SIZE)
	frame[0] = RLBinaryCodec.ACTIONS
	frame[1] = 0
	var actions: PackedFloat32Array = []
	for _agent: int in 2 * frame.decode_u16(2):
		actions.append_array([x, z, 0.0])
	say(frame + actions.to_byte_array())


func hang_up(code: int, reason: String) -> void:
	_peer.close(code, reason)
	_peer.poll()
	_peer = null
