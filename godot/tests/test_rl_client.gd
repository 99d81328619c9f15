extends TagTest
## The way to the server: connect, introduce, wait, lose it, and try again after ever longer waits.

const HELLO: Dictionary = {"type": "hello", "protocol": 1}

var _server: FakeServer
var _client: RLClient
var _states: Array[RLClient.State] = []


func _ready() -> void:
	_server = FakeServer.new()
	_client = RLClient.new()
	_client.url = _server.url()
	_client.state_changed.connect(func(state: RLClient.State) -> void: _states.append(state))
	add_child(_client)
	add_child(_server)


func _physics_process(_delta: float) -> void:
	_client.poll()


func test_waits_grow_to_a_limit_and_begin_anew() -> void:
	for wanted: float in [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]:
		check_near(_wait_after_a_failure(), wanted, 0.02, "a failure")
	_client.confirm()
	check_near(_wait_after_a_failure(), 0.25, 0.02, "after a success")


func test_nothing_happens_before_it_is_opened() -> void:
	_client.poll()
	await frames(5)
	check_equal([_server.clients, _client.state], [0, RLClient.State.IDLE], "connections")
	check_equal(_client.describe("bots play"), "not connected", "sentence")


func test_a_server_is_greeted_and_binary_agreed() -> void:
	_client.open(HELLO)
	check_equal(_client.describe("bots play"), "connecting to " + _server.url(), "sentence")
	await until(func() -> bool: return _server.heard.size() == 1)
	check_equal(JSON.parse_string(_server.heard[0]).type, "hello", "what was said")
	_server.welcome()
	await _until_ready()
	var expected: Array[RLClient.State] = [
		RLClient.State.CONNECTING, RLClient.State.GREETING, RLClient.State.READY
	]
	check_equal(_states, expected, "states")
	check(_client.is_binary and _client.is_learning, "binary, learning")
	check_equal(_client.describe(""), "connected: learning, 7 steps so far", "sentence")
	check_equal([_client.session, _client.absent_sec()], [1, 0.0], "session")
	_client.close()
	check_equal(_client.state, RLClient.State.IDLE, "closed")


func test_an_echo_means_an_older_server() -> void:
	_client.open(HELLO)
	await until(func() -> bool: return _server.heard.size() == 1)
	_server.say({"type": "echo", "recv": HELLO})
	await _until_ready()
	check(not _client.is_binary, "JSON")
	check_equal(_client.describe(""), "connected: an older server, in JSON", "sentence")


func test_no_answer_means_an_older_server_until_one_comes() -> void:
	_client.hello_timeout_sec = 0.2
	_client.open(HELLO)
	await _until_ready()
	check(not _client.is_binary, "JSON")
	check_equal(_client.session, 1, "session")
	_server.welcome()
	await until(func() -> bool: return _client.wait_for_packet(0.0))
	_client.take()
	check(_client.is_binary, "binary after all")
	check_equal(_client.session, 2, "a session of its own")


func test_without_hello_it_is_ready_at_once() -> void:
	_client.open({})
	await _until_ready()
	check_equal(_server.heard, [], "what was said")


func test_a_refusal_is_told() -> void:
	_client.open(HELLO)
	await until(func() -> bool: return _server.heard.size() == 1)
	_server.say({"type": "error", "error": "hello: protocol 1"})
	_server.hang_up(1008, "hello: protocol 1")
	await until(func() -> bool: return _client.state == RLClient.State.WAITING)
	check_equal(_client.refusal, "hello: protocol 1", "refusal")
	check(_client.describe("bots play").contains("hello: protocol 1"), _client.describe(""))


func test_where_nobody_listens_it_tries_again() -> void:
	_client.url = "ws://127.0.0.1:1"
	_client.open(HELLO)
	await until(func() -> bool: return _client.state == RLClient.State.WAITING)
	check_equal(_client.describe("bots play"), "no server: bots play; trying again in 1 s", "now")
	await until(func() -> bool: return _states.count(RLClient.State.CONNECTING) == 3)
	check_equal(_client.describe("bots play"), "no server: bots play; trying now", "then")
	check(_client.absent_sec() >= 0.7, "absent for %f s" % _client.absent_sec())


func test_a_lost_server_is_found_again() -> void:
	_client.open(HELLO)
	await until(func() -> bool: return _server.heard.size() == 1)
	_server.welcome()
	await _until_ready()
	_client.confirm()
	_server.hang_up(1001, "the server stops")
	await until(func() -> bool: return _client.state == RLClient.State.WAITING)
	var sentence: String = _client.describe("bots play")
	check(sentence.begins_with("connection closed (1001 the server stops): bots play"), sentence)
	await until(func() -> bool: return _server.heard.size() == 2)
	_server.welcome()
	await _until_ready()
	check_equal([_server.clients, _client.session], [2, 2], "connections")


func test_waiting_ends_when_its_time_is_over() -> void:
	_client.open({})
	await _until_ready()
	var start: int = Time.get_ticks_msec()
	check(not _client.wait_for_packet(0.05), "nothing came")
	check(Time.get_ticks_msec() - start >= 50, "it waited")
	_server.poll()
	_server.say({"type": "action"})
	check(_client.wait_for_packet(1.0), "something came")
	check_equal(_client.take(), '{"type":"action"}', "what came")


func test_the_largest_frames_get_through() -> void:
	_client.open({})
	await _until_ready()
	var frame: PackedByteArray = []
	frame.resize(8 * 1048576)
	frame[-1] = 42
	_client.send(frame)
	await until(func() -> bool: return _server.heard.size() == 1)
	check(_server.heard[0] == frame, "8 MiB")


## How long the client waits when a connection has failed, in seconds.
func _wait_after_a_failure() -> float:
	_client._fail("no server")
	return (_client._next_try - Time.get_ticks_msec()) / 1000.0


func _until_ready() -> void:
	await until(func() -> bool: return _client.state == RLClient.State.READY)
