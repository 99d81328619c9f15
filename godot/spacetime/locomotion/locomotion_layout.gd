class_name LocomotionLayout
extends RefCounted
## Where a rig starts, where its goals are and what stands in between, drawn from a seed.

## Half the side of the floor.
const FLOOR_HALF_M: float = 34.0
## Nothing stands nearer to the start or a goal.
const CLEARANCE_M: float = 2.2
## There is room for a rig between any two obstacles.
const GAP_M: float = 1.2
const TRIES: int = 40
const CELL_M: float = 2.6
const WALL_M: float = 0.2
const WALL_HEIGHT_M: float = 2.4
const COURSE_HALF_M: float = 10.0
const COURSE_WAYPOINTS: int = 5
const SIDES: Array[Vector2i] = [Vector2i.RIGHT, Vector2i.DOWN, Vector2i.LEFT, Vector2i.UP]

var start: Vector3 = Vector3.ZERO
var yaw: float = 0.0
## In the order in which they are to be reached.
var goals: PackedVector3Array = []
## Boxes that stand on the floor: the middles of their bases, and their sizes.
var box_places: PackedVector3Array = []
var box_sizes: PackedVector3Array = []

## Of a maze: how many cells a side has, and each cell's steps to the goal and next cell on the way.
var _cells: int = 0
var _steps: Dictionary[Vector2i, int] = {}
var _next: Dictionary[Vector2i, Vector2i] = {}
var _random: RandomNumberGenerator = RandomNumberGenerator.new()


func _init(task: String, layout_seed: int, agent: Node = null) -> void:
	_random.seed = layout_seed
	match task:
		"maze":
			_make_maze(clampi(int(RLParameters.number("maze_cells", 5.0, agent)), 2, 12))
		"course":
			_make_course()
		"obstacles":
			_make_field(agent, 60.0)
		_:
			_make_field(agent, 12.0)


## The way that is left from a place to a goal: in a maze along its corridors, else straight.
func way_m(from: Vector3, goal_index: int) -> float:
	var goal: Vector3 = goals[goal_index]
	var straight: float = Vector2(goal.x - from.x, goal.z - from.z).length()
	if not _cells:
		return straight
	var cell: Vector2i = _cell_at(from)
	if _steps.get(cell, 0) == 0:
		return straight
	var next: Vector3 = _middle(_next[cell])
	return Vector2(next.x - from.x, next.z - from.z).length() + (_steps[cell] - 1) * CELL_M


func _make_field(agent: Node, usual_count: float) -> void:
	var nearest: float = RLParameters.number("goal_min_m", 10.0, agent)
	var farthest: float = maxf(RLParameters.number("goal_max_m", 30.0, agent), nearest)
	start = _around(Vector3.ZERO, 0.0, 2.0)
	yaw = _random.randf_range(-PI, PI)
	goals = [_around(start, nearest, minf(farthest, FLOOR_HALF_M - 3.0))]
	var count: int = clampi(int(RLParameters.number("obstacle_count", usual_count, agent)), 0, 120)
	var reach: float = minf(farthest + 4.0, FLOOR_HALF_M - 2.0)
	_add_boxes(count, reach)


func _make_course() -> void:
	yaw = _random.randf_range(-PI, PI)
	var last: Vector3 = start
	for _waypoint: int in COURSE_WAYPOINTS:
		var place: Vector3 = last
		while place.distance_to(last) < 4.0 or place.distance_to(last) > 9.0:
			place = _anywhere(COURSE_HALF_M)
		goals.append(place)
		last = place
	_add_boxes(10, COURSE_HALF_M)


func _add_boxes(count: int, reach: float) -> void:
	for _box: int in count:
		for _try: int in TRIES:
			var size: Vector3 = Vector3(
				_random.randf_range(0.6, 2.4),
				_random.randf_range(1.4, 3.0),
				_random.randf_range(0.6, 2.4)
			)
			var place: Vector3 = _anywhere(reach)
			if _is_free(place, size):
				box_places.append(place)
				box_sizes.append(size)
				break


func _is_free(place: Vector3, size: Vector3) -> bool:
	var radius: float = 0.5 * Vector2(size.x, size.z).length()
	if place.distance_to(start) < radius + CLEARANCE_M:
		return false
	for goal: Vector3 in goals:
		if place.distance_to(goal) < radius + CLEARANCE_M:
			return false
	for i: int in box_places.size():
		var other: float = 0.5 * Vector2(box_sizes[i].x, box_sizes[i].z).length()
		if place.distance_to(box_places[i]) < radius + other + GAP_M:
			return false
	return true


## A depth-first search opens walls until every cell is reached, so there is exactly one way.
func _make_maze(cells: int) -> void:
	_cells = cells
	var open: Dictionary[Vector2i, Array] = {}
	var first: Vector2i = Vector2i(_random.randi_range(0, cells - 1), 0)
	var path: Array[Vector2i] = [first]
	open[first] = []
	while path:
		var here: Vector2i = path[-1]
		var ways: Array[Vector2i] = []
		for side: Vector2i in SIDES:
			if _is_inside(here + side) and here + side not in open:
				ways.append(here + side)
		if not ways:
			path.pop_back()
			continue
		var next: Vector2i = ways[_random.randi_range(0, ways.size() - 1)]
		open[here].append(next)
		open[next] = [here]
		path.append(next)
	var goal: Vector2i = _farthest(first, open)
	_farthest(goal, open)
	start = _middle(first)
	goals = [_middle(goal)]
	yaw = _random.randi_range(0, 3) * PI / 2.0
	_add_walls(open)


## The cell with the longest way from another; fills `_steps` and `_next` with the ways to it.
func _farthest(from: Vector2i, open: Dictionary[Vector2i, Array]) -> Vector2i:
	_steps = {from: 0}
	_next = {}
	var queue: Array[Vector2i] = [from]
	var at: int = 0
	while at < queue.size():
		var here: Vector2i = queue[at]
		at += 1
		for other: Vector2i in open[here]:
			if other not in _steps:
				_steps[other] = _steps[here] + 1
				_next[other] = here
				queue.append(other)
	return queue[-1]


func _add_walls(open: Dictionary[Vector2i, Array]) -> void:
	for is_upright: bool in [false, true]:
		for line: int in _cells + 1:
			var length: int = 0
			for at: int in _cells + 1:
				var is_wall: bool = at < _cells and _has_wall(line, at, is_upright, open)
				if is_wall:
					length += 1
				elif length:
					_add_wall(line, at - length, length, is_upright)
					length = 0


## Whether there is a wall before cell `line` of row (or column) `at`.
func _has_wall(line: int, at: int, is_upright: bool, open: Dictionary[Vector2i, Array]) -> bool:
	var here: Vector2i = Vector2i(line, at) if is_upright else Vector2i(at, line)
	var before: Vector2i = here - (Vector2i.RIGHT if is_upright else Vector2i.DOWN)
	return here not in open or before not in open or before not in open[here]


func _add_wall(line: int, at: int, length: int, is_upright: bool) -> void:
	var half: float = 0.5 * _cells * CELL_M
	var along: float = (at + 0.5 * length) * CELL_M - half
	var across: float = line * CELL_M - half
	var long: float = length * CELL_M + WALL_M
	box_places.append(Vector3(across, 0.0, along) if is_upright else Vector3(along, 0.0, across))
	box_sizes.append(
		Vector3(WALL_M, WALL_HEIGHT_M, long) if is_upright else Vector3(long, WALL_HEIGHT_M, WALL_M)
	)


func _is_inside(cell: Vector2i) -> bool:
	return cell.x >= 0 and cell.y >= 0 and cell.x < _cells and cell.y < _cells


func _middle(cell: Vector2i) -> Vector3:
	var half: float = 0.5 * (_cells - 1)
	return Vector3(cell.x - half, 0.0, cell.y - half) * CELL_M


func _cell_at(place: Vector3) -> Vector2i:
	var half: float = 0.5 * _cells * CELL_M
	return Vector2i(floori((place.x + half) / CELL_M), floori((place.z + half) / CELL_M))


func _around(middle: Vector3, nearest: float, farthest: float) -> Vector3:
	var angle: float = _random.randf_range(0.0, TAU)
	var distance: float = _random.randf_range(nearest, farthest)
	return middle + Vector3(cos(angle), 0.0, sin(angle)) * distance


func _anywhere(reach: float) -> Vector3:
	return Vector3(_random.randf_range(-reach, reach), 0.0, _random.randf_range(-reach, reach))
