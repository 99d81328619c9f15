class_name TagArenaLook
extends Node3D
## The look of an arena: the room, the two agents, their trails and rays, a burst at every tag.
##
## Everything follows from the match and from the match's time, never from a clock.

## The look of one agent, attached to its body.
@export var agent_look: PackedScene

## How fast the match's time runs: below 1 in slow motion, 0 when it is paused.
var time_scale: float = 1.0
## Whether the agents' rays are drawn.
var show_rays: bool = false
var agents: Array[TagAgentLook] = []

var _game: TagMatch
var _layout: TagLayout
var _episode: int = -1
var _tick: int = 0
var _seeker: int = 0
var _end: TagMatch.End = TagMatch.End.GOING_ON

@onready var room: TagRoomLook = $Room
@onready var burst: TagBurst = $Burst
@onready var trails: Array[TagTrail] = [$Trail1, $Trail2]
@onready var rays: Array[TagRays] = [$Rays1, $Rays2]
@onready var _shadows: Array[TagContactShadow] = [$Shadow1, $Shadow2]


func _process(delta: float) -> void:
	advance(delta * time_scale)


## Show a match; the agents' looks become children of their bodies.
func setup(game: TagMatch, bodies: Array[AnimatableBody3D]) -> void:
	_game = game
	for index: int in 2:
		agents.append(agent_look.instantiate())
		bodies[index].add_child(agents[index])
		agents[index].setup(game.rules, index)
		trails[index].agent_size = game.rules.size
		rays[index].rules = game.rules
		_shadows[index].scale = Vector3.ONE * game.rules.size


## Show the match as it is now, `seconds` of its time after the last call.
func advance(seconds: float) -> void:
	if _game.layouts[_game.layout_index] != _layout:
		_layout = _game.layouts[_game.layout_index]
		room.build(_game.rules, _layout)
	if _game.episode != _episode or _game.tick < _tick:
		_reset()
	_detect_tag()
	_tick = _game.tick
	burst.advance(seconds)
	_reveal_agents(seconds)
	for index: int in 2:
		var agent: TagAgent = _game.agents[index]
		var feet: Vector3 = Vector3(agent.x, agent.y - _game.rules.half, agent.z)
		agents[index].advance(_game, seconds)
		trails[index].advance(feet, _color(index), seconds)
		_shadows[index].position = Vector3(feet.x, _ground_below(agent), feet.z)
		rays[index].visible = show_rays
		if show_rays:
			rays[index].show_observation(
				agent, _game.observations[index], _color(index), _color(1 - index)
			)


func _reveal_agents(seconds: float) -> void:
	var camera: Camera3D = get_viewport().get_camera_3d()
	if camera:
		var places: PackedVector3Array = []
		for agent: TagAgent in _game.agents:
			places.append(Vector3(agent.x, agent.y, agent.z))
		room.reveal(places, to_local(camera.global_position), seconds)


func _reset() -> void:
	_episode = _game.episode
	_seeker = _game.seeker
	_end = TagMatch.End.GOING_ON
	burst.reset()
	for index: int in 2:
		agents[index].reset(_game)
		trails[index].reset()


func _detect_tag() -> void:
	var tagged: bool = _game.end == TagMatch.End.TAGGED and _end != _game.end
	if tagged or _game.seeker != _seeker:
		var one: TagAgent = _game.agents[0]
		var two: TagAgent = _game.agents[1]
		var middle: Vector3 = 0.5 * Vector3(one.x + two.x, 0.0, one.z + two.z)
		middle.y = minf(one.y, two.y) - _game.rules.half + TagContactShadow.ABOVE_M * 2.0
		burst.start(middle)
	_seeker = _game.seeker
	_end = _game.end


func _color(agent: int) -> Color:
	return TagLook.role_color(_game.role_of(agent))


## The height at which an agent's shadow lies: on top of what it stands on or would fall on.
func _ground_below(agent: TagAgent) -> float:
	var height: float = 0.0
	for index: int in _layout.count:
		var away: Vector3 = (_layout.centre(index) - Vector3(agent.x, 0.0, agent.z)).abs()
		var extent: Vector3 = _layout.extent(index)
		if away.x < 0.5 * extent.x and away.z < 0.5 * extent.z and extent.y < agent.y:
			height = maxf(height, extent.y)
	return height + 2.0 * TagContactShadow.ABOVE_M
