class_name SpaceTimeSync
extends Sync
## The Sync of SpaceTime's scenes: the trainer may also come over HTTP.
##
## `--port=` on the command line means the socket, as for every game. Else, if the HTTP API is on, a
## game without a window waits for HTTP from the first tick, and in a window people play until the
## first command arrives.

## The Sync of the scene.
static var current: SpaceTimeSync

var _api: HttpApi


func _enter_tree() -> void:
	current = self
	if "port" in RLAddon.Arguments.read():
		HttpApi.start(get_tree())
		return
	_api = HttpApi.start(get_tree())
	if _api and not FeatureScene.is_headless() and control_mode == ControlModes.TRAINING:
		control_mode = ControlModes.HUMAN


func _exit_tree() -> void:
	if current == self:
		current = null


func connect_to_server() -> bool:
	if not _api:
		return super()
	_rl_lockstep.trainer = HttpTrainer.new(self, _rl_lockstep.groups.registry, _api)
	return true


## A command came while HTTP does not control the agents; whether it was answered.
func answer_without_trainer(connection: HttpConnection) -> bool:
	if connection.request.path in ["/rl/observation", "/rl/state", "/rl/info"] and all_agents:
		HttpTrainer.describe_first(connection, all_agents[0])
		return true
	if connected and not _api:
		connection.fail(409, "another trainer controls the agents")
		return true
	if _api and control_mode != ControlModes.TRAINING and initialized:
		control_mode = ControlModes.TRAINING
	return false
