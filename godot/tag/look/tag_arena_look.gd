class_name TagArenaLook
extends Node3D
## How an arena looks: the room, the two agents, their trails, a burst at every tag, their sight.
##
## Everything follows from the match and from the game's time, never from a clock.

## How fast the game's time runs: below 1 in slow motion, 0 when it is held.
var pace: float = 1.0
## Whether the agents' rays are drawn.
var show_rays: bool = false
var room: TagRoomLook
var agents: Array[TagAgentLook] = []
var trails: Array[TagTrail] = []
var rays: Array[TagRays] = []
var burst: TagBurst = TagBurst.new()

var _game: TagMatch
var _shadows: Array[Node3D] = []
var _layout: TagLayout
var _episode: int = -1
var _tick: int = 0
var _seeker: int = 0
var _end: TagMatch.End = TagMatch.End.GOING_ON


func _init(game: TagMatch, bodies: Array[AnimatableBody3D]) -> void:
	_game = game
	name = "Look"
	add_child(burst)
	for index: int in 2:
		agents.append(TagAgentLook.new(game.rules, index))
		bodies[index].add_child(agents[index])
		trails.append(TagTrail.new(game.rules.size))
		add_child(trails[index])
		rays.append(TagRays.new(game.rules))
		add_child(rays[index])
		var footprint: Vector2 = Vector2.ONE * 0.6 * game.rules.size
		_shadows.append(TagRoomLook.contact(footprint, 0.45 * game.rules.size, 0.5, Vector3.ZERO))
		add_child(_shadows[index])


func _process(delta: float) -> void:
	advance(delta * pace)


## Show the match as it is now, `seconds` of its time later.
func advance(seconds: float) -> void:
	if _game.layouts[_game.layout_index] != _layout:
		_build_room()
	if _game.episode != _episode or _game.tick < _tick:
		_start_over()
	_notice_tags()
	_tick = _game.tick
	burst.advance(seconds)
	_reveal(seconds)
	for index: int in 2:
		var agent: TagAgent = _game.agents[index]
		var feet: Vector3 = Vector3(agent.x, agent.y - _game.rules.half, agent.z)
		agents[index].advance(_game, seconds)
		trails[index].advance(feet, _colour(index), seconds)
		_shadows[index].position = Vector3(feet.x, _ground_below(agent), feet.z)
		rays[index].visible = show_rays
		if show_rays:
			rays[index].show_sight(
				agent, _game.observations[index], _colour(index), _colour(1 - index)
			)


func _build_room() -> void:
	if room:
		room.free()
	_layout = _game.layouts[_game.layout_index]
	room = TagRoomLook.new(_game.rules, _layout)
	add_child(room)


func _reveal(seconds: float) -> void:
	var places: PackedVector3Array = []
	for agent: TagAgent in _game.agents:
		places.append(Vector3(agent.x, agent.y, agent.z))
	var camera: Camera3D = get_viewport().get_camera_3d()
	if camera:
		room.reveal(places, to_local(camera.global_position), seconds)


func _start_over() -> void:
	_episode = _game.episode
	_seeker = _game.seeker
	_end = TagMatch.End.GOING_ON
	burst.start_over()
	for index: int in 2:
		agents[index].start_over(_game)
		trails[index].start_over()


func _notice_tags() -> void:
	var tagged: bool = _game.end == TagMatch.End.TAGGED and _end != _game.end
	if tagged or _game.seeker != _seeker:
		var one: TagAgent = _game.agents[0]
		var two: TagAgent = _game.agents[1]
		var middle: Vector3 = 0.5 * Vector3(one.x + two.x, 0.0, one.z + two.z)
		middle.y = minf(one.y, two.y) - _game.rules.half + TagRoomLook.ABOVE_M * 2.0
		burst.begin(middle, [TagLook.ROLES.seeker, TagLook.ROLES.hider, TagLook.PALE])
	_seeker = _game.seeker
	_end = _game.end


func _colour(agent: int) -> Color:
	return TagLook.ROLES[TagLook.role_of(_game, agent)]


## The top of what an agent stands on or would fall on, as high as its shadow lies.
func _ground_below(agent: TagAgent) -> float:
	var height: float = 0.0
	for index: int in _layout.count:
		var away: Vector3 = (_layout.centre(index) - Vector3(agent.x, 0.0, agent.z)).abs()
		var extent: Vector3 = _layout.extent(index)
		if away.x < 0.5 * extent.x and away.z < 0.5 * extent.z and extent.y < agent.y:
			height = maxf(height, extent.y)
	return height + 2.0 * TagRoomLook.ABOVE_M
