extends TagTest
## What the camera has in its picture: the whole arena, and both agents nearly always.
##
## Bots play real matches on every layout of the game; the picture is 16:9.

const VIEW: PackedScene = preload("res://tag/look/tag_view.tscn")
const PICTURE: Vector2i = Vector2i(1280, 720)
const EPISODES: int = 3
## In how many of the frames an agent is in the picture and nothing is before its middle; and in
## how many that can be said of the top of both.
const LEAST_SEEN: float = 0.95
## How much larger than at the far wall an agent may be at the near one.
const MOST_LARGER: float = 1.2
## How high the remains of a wall may be that is cut away.
const RIM_M: float = 0.3

var _rules: TagRules = TagRules.read()
var _stage: TagStage
var _view: TagView
## The bodies of walls of which no more than a rim is drawn.
var _cut_away: Array[RID] = []


func _exit_tree() -> void:
	TagLook.wanted = false


func test_both_agents_are_seen_on_every_layout() -> void:
	for file: String in DirAccess.get_files_at(TagLayout.FOLDER):
		var layout: String = file.get_basename()
		await _build(layout)
		var seen: Dictionary[String, float] = _play_and_look()
		check_equal(seen.in_picture, 1.0, "%s: share of frames with both in the picture" % layout)
		check(seen.middle >= LEAST_SEEN, "%s: an agent's middle seen in %f" % [layout, seen.middle])
		check(seen.tops >= LEAST_SEEN, "%s: both agents seen in %f" % [layout, seen.tops])


func test_this_test_sees_what_is_hidden() -> void:
	await _build("central_cross")
	check(_is_seen(Vector3(0.0, 0.5, 8.0)), "in the open")
	check(not _is_seen(Vector3(3.0, 0.5, -1.1)), "behind the cross")
	check(_is_in_picture(Vector3(9.5, 0.5, 9.5)), "in a corner")
	check(not _is_in_picture(Vector3(0.0, 0.5, 12.0)), "before the arena")
	check(not _is_in_picture(Vector3(20.0, 0.5, 0.0)), "beside the arena")


func test_the_whole_arena_is_in_the_picture_and_fills_it() -> void:
	await _build("empty")
	var low: Vector2 = Vector2.INF
	var high: Vector2 = -Vector2.INF
	for corner: int in 8:
		var at: Vector3 = _corner(corner) * Vector3(10.5, 1.5, 10.5) + Vector3.UP * 1.5
		var pixel: Vector2 = _view.camera.unproject_position(at)
		low = low.min(pixel)
		high = high.max(pixel)
	check(low.x > 0.0 and low.y > 0.0, "left and top are at %s" % low)
	check(high.x < PICTURE.x and high.y < PICTURE.y, "right and bottom are at %s" % high)
	check(high.y - low.y > 0.88 * PICTURE.y, "it is %f high" % (high.y - low.y))
	check_near(low.x + high.x, PICTURE.x, 1.0, "left and right margin")


func test_an_agent_is_nearly_as_large_at_the_far_wall() -> void:
	await _build("empty")
	var near: float = _apparent_size(Vector3(0.0, 0.5, 9.5))
	for place: Vector3 in [Vector3(0.0, 0.5, -9.5), Vector3(9.5, 0.5, -9.5)] as Array[Vector3]:
		var larger: float = near / _apparent_size(place)
		check(larger > 1.0 and larger <= MOST_LARGER, "%f times as large" % larger)


func test_walls_that_would_hide_agents_are_cut_away() -> void:
	await _build("empty")
	for place: Vector3 in (
		[Vector3(0.0, 0.5, 9.5), Vector3(9.5, 0.5, 0.0), Vector3(-9.5, 0.5, 9.5)] as Array[Vector3]
	):
		check(_is_seen(place), "an agent at %s" % place)
	var heights: Dictionary[String, float] = _drawn_wall_heights()
	check(heights.South <= RIM_M, "the near wall is drawn %f m high" % heights.South)
	for far_wall: String in ["North", "West", "East"]:
		check_near(heights[far_wall], _rules.wall_height, 0.001, far_wall)


func test_other_pictures_have_the_whole_arena_too() -> void:
	for size: Vector2i in [Vector2i(720, 1280), Vector2i(1000, 1000)] as Array[Vector2i]:
		await _build("empty", size)
		for corner: int in 4:
			var at: Vector3 = _corner(corner) * Vector3(10.5, 0.0, 10.5)
			var pixel: Vector2 = _view.camera.unproject_position(at)
			check(Rect2(Vector2.ZERO, size).has_point(pixel), "%s in %s" % [pixel, size])


func test_following_keeps_the_agent_in_the_middle() -> void:
	await _build("empty")
	var overview: float = _view.camera.global_position.y
	_view.camera.target = TagCamera.Target.SECOND_AGENT
	var agent: TagAgent = _stage.arenas[0].game.agents[1]
	var steps: PackedFloat32Array = []
	for _frame: int in 120:
		var before: Vector3 = _view.camera.global_position
		await frames(1)
		steps.append(before.distance_to(_view.camera.global_position))
	var pixel: Vector2 = _view.camera.unproject_position(Vector3(agent.x, agent.y, agent.z))
	check(pixel.distance_to(0.5 * PICTURE) < 20.0, "it is at %s" % pixel)
	check(_view.camera.global_position.y < 0.7 * overview, "it comes nearer")
	check(steps[1] < 0.12 * (overview - _view.camera.global_position.y), "smoothly")


## A stage with one arena, and the view of it, in a picture of its own.
func _build(layout: String, size: Vector2i = PICTURE) -> void:
	for child: Node in get_children():
		child.free()
	TagLook.wanted = true
	var picture: SubViewport = SubViewport.new()
	picture.size = size
	picture.own_world_3d = true
	add_child(picture)
	_stage = TagStage.new()
	_stage.rules = _rules
	picture.add_child(_stage)
	var arena: TagArena = TagArena.create()
	_stage.add_child(arena)
	_stage.arenas.append(arena)
	var game: TagMatch = TagMatch.new(_rules, [TagLayout.read(layout, _rules)])
	game.begin(0)
	arena.setup(game)
	_view = VIEW.instantiate()
	_view.stage = _stage
	picture.add_child(_view)
	await frames(3)
	_cut_away.clear()
	var heights: Dictionary[String, float] = _drawn_wall_heights()
	for wall: String in heights:
		if heights[wall] <= RIM_M:
			_cut_away.append((arena.get_node("Room/" + wall) as StaticBody3D).get_rid())


## Play on, looking after every decision: the shares of what was looked at that was seen.
func _play_and_look() -> Dictionary[String, float]:
	var seeker: TagBot = TagBot.new(TagBot.Kind.CHASER, _rules)
	var hider: TagBot = TagBot.new(TagBot.Kind.EVADER, _rules)
	var game: TagMatch = _stage.arenas[0].game
	var looks: int = 0
	var seen: Dictionary[String, float] = {"in_picture": 0.0, "middle": 0.0, "tops": 0.0}
	for episode: int in EPISODES:
		game.begin(episode)
		while game.end == TagMatch.End.GOING_ON:
			game.decide(seeker.act(game.observations[0]), hider.act(game.observations[1]))
			looks += 1
			var tops: int = 0
			var in_picture: int = 0
			for agent: TagAgent in game.agents:
				var at: Vector3 = Vector3(agent.x, agent.y, agent.z)
				in_picture += int(_is_in_picture(at))
				tops += int(_is_seen(at + Vector3.UP * _rules.half))
				seen.middle += 0.5 * float(_is_seen(at) and _is_in_picture(at))
			seen.in_picture += float(in_picture == 2)
			seen.tops += float(tops == 2)
	for what: String in seen:
		seen[what] /= looks
	return seen


func _is_in_picture(middle: Vector3) -> bool:
	for corner: int in 8:
		var at: Vector3 = middle + _rules.half * _corner(corner)
		if _view.camera.is_position_behind(at):
			return false
		var pixel: Vector2 = _view.camera.unproject_position(at)
		if not Rect2(Vector2.ZERO, PICTURE).has_point(pixel):
			return false
	return true


## Whether Godot's physics finds nothing before it, of all that is drawn.
func _is_seen(at: Vector3) -> bool:
	var query: PhysicsRayQueryParameters3D = PhysicsRayQueryParameters3D.new()
	query.from = _view.camera.global_position
	query.to = at
	query.collision_mask = TagArena.SOLID_LAYER
	query.exclude = _cut_away
	return _stage.get_world_3d().direct_space_state.intersect_ray(query).is_empty()


## How high the walls' meshes reach.
func _drawn_wall_heights() -> Dictionary[String, float]:
	var heights: Dictionary[String, float] = {}
	for wall: String in ["North", "South", "West", "East"]:
		var drawn: MeshInstance3D = _stage.arenas[0].look.room.get_node(wall)
		heights[wall] = drawn.position.y + drawn.mesh.get_aabb().end.y
	return heights


func _apparent_size(at: Vector3) -> float:
	var across: Vector3 = _view.camera.global_basis.x * _rules.half
	var camera: Camera3D = _view.camera
	var left: Vector2 = camera.unproject_position(at - across)
	return left.distance_to(camera.unproject_position(at + across))


## A corner of a cube of half-size 1; the first four are level.
func _corner(index: int) -> Vector3:
	return Vector3(
		1.0 if index & 1 else -1.0, 1.0 if index & 4 else -1.0, 1.0 if index & 2 else -1.0
	)
