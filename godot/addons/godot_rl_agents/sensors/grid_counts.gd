@tool
extends RefCounted
## What GridSensor2D and GridSensor3D share: counts by cell and by layer of a collision mask.

## The most shapes counted in one cell.
const MAX_HITS: int = 32

## Cell by cell, in each cell one count per layer, lowest layer first.
var counts: PackedFloat64Array = []

## The layers of the mask, each as a mask of its own.
var _layers: PackedInt64Array = []


func set_up(mask: int, cells: int) -> void:
	_layers.clear()
	for layer: int in 32:
		if mask & (1 << layer):
			_layers.append(1 << layer)
	counts.resize(cells * _layers.size())
	clear()


func clear() -> void:
	counts.fill(0.0)


## Count what a query found in a cell. A body with several shapes in the cell counts once.
func add(cell: int, hits: Array[Dictionary], layers_of: Callable) -> void:
	var counted: Dictionary[RID, bool] = {}
	for hit: Dictionary in hits:
		if counted.has(hit.rid):
			continue
		counted[hit.rid] = true
		var layers: int = layers_of.call(hit)
		for index: int in _layers.size():
			if layers & _layers[index]:
				counts[cell * _layers.size() + index] += 1.0


## The colour in which a cell is drawn.
func color(cell: int) -> Color:
	for index: int in _layers.size():
		if counts[cell * _layers.size() + index]:
			return RLAddon.SensorDrawing.FULL_CELL
	return RLAddon.SensorDrawing.EMPTY_CELL


static func warnings(sensor: Node) -> PackedStringArray:
	var found: PackedStringArray = []
	if sensor.detection_mask == 0:
		found.append("detection_mask has no layer: the sensor sees nothing.")
	if not sensor.collide_with_areas and not sensor.collide_with_bodies:
		found.append("Neither areas nor bodies are counted: the sensor sees nothing.")
	return found


## Scenes made with Godot RL Agents contain one saved area per cell.
static func remove_saved_cells(sensor: Node) -> void:
	for child: Node in sensor.get_children():
		if child is CollisionObject2D or child is CollisionObject3D:
			if "GridCell" in child.name:
				child.queue_free()
