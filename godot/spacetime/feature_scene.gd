class_name FeatureScene
extends Node3D
## The base of SpaceTime's scenes: 90 ticks a second, islands with agents, and the HTTP API.
##
## A scene sets `island` or overrides `make_island`; islands are far enough apart not to see each
## other. Parameters are read with RLParameters, random numbers are drawn from the agent's
## `episode_seed`.

const TICKS_PER_SECOND: int = 90
const TICKS_PER_STEP: int = 6
const MOST_ISLANDS: int = 64
## Without a window so many ticks share a frame, which costs about as much as a tick. A power of two
## leaves the length of a tick the same to the bit.
const HEADLESS_SPEED: int = 8

## What an island is made of.
@export var island: PackedScene
## How many islands there are; the parameter `rigs` goes first.
@export_range(1, 64) var islands: int = 1
## How many there are in a game without a window that a trainer started over the socket.
@export_range(1, 64) var training_islands: int = 8
## The distance between the middles of two islands.
@export_range(1.0, 5000.0, 1.0, "suffix:m") var spacing_m: float = 80.0

## Of all islands since the scene was loaded.
var episodes: int = 0
var successes: int = 0
var comfort_sum: float = 0.0

var _ticks_before: int = 60
var _scale_before: float = 1.0


func _enter_tree() -> void:
	_ticks_before = Engine.physics_ticks_per_second
	_scale_before = Engine.time_scale
	var speed: int = HEADLESS_SPEED if is_headless() else 1
	Engine.physics_ticks_per_second = TICKS_PER_SECOND * speed
	Engine.time_scale = speed


func _exit_tree() -> void:
	Engine.physics_ticks_per_second = _ticks_before
	Engine.time_scale = _scale_before
	var monitor: Node = get_node_or_null(VoxelPerformanceMonitor.PATH)
	if monitor:
		monitor.queue_free()


func _ready() -> void:
	if VRRig.has_headset():
		get_viewport().use_xr = true
	if is_headless() and "port" in RLAddon.Arguments.read():
		islands = training_islands
	islands = clampi(int(RLParameters.number("rigs", islands)), 1, MOST_ISLANDS)
	for index: int in islands:
		var made: Node3D = make_island(index)
		made.position = place_of(index)
		add_child(made)


## Whether nobody sees the game.
static func is_headless() -> bool:
	return DisplayServer.get_name() == "headless"


## Virtual: an island with its agents.
func make_island(_index: int) -> Node3D:
	return island.instantiate()


## Virtual: figures for `/performance`.
func get_metrics() -> Dictionary:
	var found: Dictionary = {
		"islands": islands,
		"episodes": episodes,
		"successes": successes,
		"comfort_mean": comfort_sum / maxi(episodes, 1),
	}
	var monitor: Node = get_node_or_null(VoxelPerformanceMonitor.PATH)
	if monitor:
		found["voxel_performance"] = monitor.get_statistics()
	return found


## An island's episode is over.
func record_episode(summary: Dictionary) -> void:
	episodes += 1
	successes += 1 if summary.get("success") else 0
	comfort_sum += summary.get("comfort_mean", 1.0)


## The middle of an island: they lie in a square around the origin.
@warning_ignore("integer_division")
func place_of(index: int) -> Vector3:
	var across: int = ceili(sqrt(islands))
	var rows: int = ceili(float(islands) / across)
	var cell: Vector2 = (
		Vector2(index % across, index / across) - 0.5 * Vector2(across - 1, rows - 1)
	)
	return Vector3(cell.x, 0.0, cell.y) * spacing_m
