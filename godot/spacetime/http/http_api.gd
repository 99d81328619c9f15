class_name HttpApi
extends Node
## The HTTP API of SpaceTime's scenes, as docs/http_api.md says. It stays while scenes change.
##
## It serves in every frame, and while a trainer is waited for: HttpTrainer calls `poll`. Requests
## for the trainer wait in `commands` until that takes them.

const NAME: StringName = &"SpaceTimeHttpApi"
const USUAL_PORT: int = 8080
const LOOPBACK: String = "127.0.0.1"
const MOST_CONNECTIONS: int = 64
const MOST_REQUESTS: int = 300
const WINDOW_MSEC: int = 10000
## How long a command waits for agents before it is refused.
const COMMAND_MSEC: int = 10000
const TOKEN_BYTES: int = 32
const LOGS_TO_FILE: String = "debug/file_logging/enable_file_logging"

static var _instance: HttpApi

## Requests that the trainer must answer, in their order.
var commands: Array[HttpConnection] = []
## The trainer that takes them, while a Sync has one.
var trainer: HttpTrainer
## Whether frames must run before the next command: a scene is being changed.
var needs_frames: bool = false
var whitelist: SceneWhitelist
var port: int = USUAL_PORT

var _server: TCPServer = TCPServer.new()
var _connections: Array[HttpConnection] = []
var _token: PackedByteArray = []
var _crypto: Crypto = Crypto.new()
var _scenes: SceneEndpoints
var _window_start_msec: int = 0
var _window_requests: int = 0
var _routes: Dictionary[String, Dictionary] = {}


## The API, if it was asked for and can listen; the same one for every scene of the game.
static func start(tree: SceneTree) -> HttpApi:
	if is_instance_valid(_instance) or not is_wanted():
		return _instance
	var api: HttpApi = HttpApi.new()
	if not api._listen():
		if FeatureScene.is_headless():
			tree.quit(1)
		api.free()
		return null
	_instance = api
	api.name = NAME
	tree.root.add_child.call_deferred(api)
	return api


## Whether the command line, the environment or the editor ask for it.
static func is_wanted() -> bool:
	if "--http-api" in OS.get_cmdline_args() + OS.get_cmdline_user_args():
		return true
	if OS.get_environment("GODOT_ENABLE_HTTP_API") == "1":
		return true
	return OS.is_debug_build() and EngineDebugger.is_active()


func _init() -> void:
	process_mode = Node.PROCESS_MODE_ALWAYS
	_scenes = SceneEndpoints.new(self)
	_routes = {
		"/health": {"GET": _health},
		"/status": {"GET": _scenes.status},
		"/scene": {"GET": _scenes.current, "POST": _scenes.change, "PUT": _scenes.validate},
		"/scene/reload": {"POST": _scenes.reload},
		"/scenes": {"GET": _scenes.list},
		"/performance": {"GET": _scenes.performance},
		"/performance/metrics": {"GET": _scenes.performance},
		"/rl/info": {"GET": _queue},
		"/rl/observation": {"GET": _queue},
		"/rl/state": {"GET": _queue},
		"/rl/action": {"POST": _queue},
		"/rl/reset": {"POST": _queue},
		"/rl/step": {"POST": _queue},
		"/rl/wire": {"POST": _queue},
	}


func _process(_delta: float) -> void:
	needs_frames = _scenes.is_changing()
	poll()
	if commands and not trainer and not needs_frames:
		_serve_without_trainer()


func _exit_tree() -> void:
	for connection: HttpConnection in _connections:
		connection.close()
	_server.stop()


## Serve what has arrived.
func poll() -> void:
	while _server.is_connection_available():
		_accept(HttpConnection.new(_server.take_connection()))
	var has_closed: bool = false
	for connection: HttpConnection in _connections:
		if connection.poll():
			_serve(connection)
		has_closed = has_closed or connection.state == HttpConnection.State.CLOSED
	if has_closed:
		_connections.assign(_connections.filter(_is_open))
		commands.assign(commands.filter(_is_open))


func _listen() -> bool:
	var typed: Dictionary[String, String] = RLAddon.Arguments.read()
	var wish: String = typed.get("http-port", OS.get_environment("GODOT_HTTP_PORT"))
	port = wish.to_int() if wish.is_valid_int() else USUAL_PORT
	var bind: String = typed.get("http-bind", LOOPBACK)
	var usual: String = "development" if OS.is_debug_build() else "production"
	var section: String = typed.get("environment", OS.get_environment("GODOT_ENV"))
	whitelist = SceneWhitelist.new(section if section in SceneWhitelist.ENVIRONMENTS else usual)
	var given: String = OS.get_environment("API_TOKEN")
	if not given and ProjectSettings.get_setting_with_override(LOGS_TO_FILE):
		# The token would be in that file.
		printerr("SpaceTime: no HTTP API: set API_TOKEN, or turn %s off" % LOGS_TO_FILE)
		return false
	if port < 1 or port > 65535 or _server.listen(port, bind) != OK:
		printerr("SpaceTime: the HTTP API cannot listen on %s:%d; use --http-port=" % [bind, port])
		return false
	print("SpaceTime: HTTP API on http://%s:%d" % [bind, port])
	if given:
		_token = given.to_utf8_buffer()
	else:
		var made: String = _crypto.generate_random_bytes(TOKEN_BYTES).hex_encode()
		_token = made.to_ascii_buffer()
		print("SpaceTime: API token: " + made)
	return true


func _accept(connection: HttpConnection) -> void:
	if _connections.size() >= MOST_CONNECTIONS:
		for other: HttpConnection in _connections:
			if not other.is_known:
				other.close()
				_connections.erase(other)
				break
	if _connections.size() >= MOST_CONNECTIONS:
		connection.fail(503, "more than %d connections" % MOST_CONNECTIONS)
		connection.close()
	else:
		_connections.append(connection)


func _serve(connection: HttpConnection) -> void:
	var request: HttpRequest = connection.request
	if request.path == "/health" and request.method == "GET":
		_health(connection)
		return
	# A connection that sends the same head again has the same request.
	if not request.has_token and not _has_token(request):
		connection.fail(
			401, "send the header Authorization: Bearer <token>", {}, "WWW-Authenticate: Bearer\r\n"
		)
		return
	request.has_token = true
	connection.is_known = true
	if request.path not in _routes:
		connection.fail(404, "no such endpoint: %s" % request.path.left(200))
		return
	var methods: Dictionary = _routes[request.path]
	if request.method not in methods:
		var allowed: String = ", ".join(methods.keys())
		connection.fail(405, "use " + allowed, {}, "Allow: %s\r\n" % allowed)
		return
	if not request.path.begins_with("/rl/") and _is_too_fast():
		var wait_sec: int = ceili((WINDOW_MSEC + _window_start_msec - Time.get_ticks_msec()) / 1e3)
		connection.fail(
			429,
			"more than %d requests in 10 s" % MOST_REQUESTS,
			{},
			"Retry-After: %d\r\n" % wait_sec
		)
		return
	methods[request.method].call(connection)


func _has_token(request: HttpRequest) -> bool:
	var given: String = request.headers.get("authorization", "")
	if given.left(7).to_lower() != "bearer ":
		return false
	return _crypto.constant_time_compare(_token, given.substr(7).to_utf8_buffer())


func _is_too_fast() -> bool:
	var now: int = Time.get_ticks_msec()
	if now - _window_start_msec > WINDOW_MSEC:
		_window_start_msec = now
		_window_requests = 0
	_window_requests += 1
	return _window_requests > MOST_REQUESTS


func _health(connection: HttpConnection) -> void:
	connection.answer(200, {"status": "ok"})


func _queue(connection: HttpConnection) -> void:
	commands.append(connection)


## Commands need agents: ask Sync to let HTTP control them, and refuse what waits too long.
func _serve_without_trainer() -> void:
	var sync: SpaceTimeSync = SpaceTimeSync.current
	if is_instance_valid(sync) and sync.answer_without_trainer(commands[0]):
		commands.pop_front()
	elif Time.get_ticks_msec() - commands[0].since_msec > COMMAND_MSEC:
		commands.pop_front().fail(409, "the scene has no agents that HTTP can control")


static func _is_open(connection: HttpConnection) -> bool:
	return connection.state != HttpConnection.State.CLOSED
