extends TagTest
## GridSensor2D and GridSensor3D against things in known cells.


func test_each_cell_counts_each_layer_2d() -> void:
	_box_2d(StaticBody2D.new(), Vector2(20.0, -20.0), 1)
	_box_2d(StaticBody2D.new(), Vector2(22.0, -20.0), 1)
	_box_2d(StaticBody2D.new(), Vector2(-20.0, 0.0), 4)
	_box_2d(StaticBody2D.new(), Vector2(0.0, 20.0), 5)
	_box_2d(StaticBody2D.new(), Vector2(0.0, 0.0), 2)
	var grid: GridSensor2D = _grid_2d(5)
	await frames(2)
	var seen: PackedFloat64Array = grid.get_observation()
	# columns from the left; in each the cells from the top; in each the layers 1 and 3
	var left: Array = [0, 0, 0, 1, 0, 0]
	var middle: Array = [0, 0, 0, 0, 1, 1]
	var right: Array = [2, 0, 0, 0, 0, 0]
	check_equal(seen, PackedFloat64Array(left + middle + right), "counts")


func test_a_grid_that_is_not_square_has_a_place_for_every_cell_2d() -> void:
	_box_2d(StaticBody2D.new(), Vector2(40.0, 0.0), 1)
	_box_2d(StaticBody2D.new(), Vector2(-40.0, 20.0), 1)
	var grid: GridSensor2D = _grid_2d(1)
	grid.grid_size_x = 5
	await frames(2)
	var seen: PackedFloat64Array = grid.get_observation()
	check_equal(seen.size(), 15, "cells")
	check_equal([seen[2], seen[13], seen.count(0.0)], [1.0, 1.0, 13], "counts")


func test_bodies_and_areas_are_asked_for_2d() -> void:
	_box_2d(Area2D.new(), Vector2.ZERO, 1)
	var grid: GridSensor2D = _grid_2d(1)
	await frames(2)
	check_equal(grid.get_observation()[4], 0.0, "areas, unless asked")
	grid.collide_with_areas = true
	check_equal(grid.get_observation()[4], 1.0, "an area")


func test_a_body_with_two_shapes_counts_once_2d() -> void:
	var body: StaticBody2D = StaticBody2D.new()
	body.add_child(_shape_2d())
	_box_2d(body, Vector2.ZERO, 1)
	var grid: GridSensor2D = _grid_2d(1)
	await frames(2)
	check_equal(grid.get_observation()[4], 1.0, "count")


func test_it_moves_and_turns_2d() -> void:
	_box_2d(StaticBody2D.new(), Vector2(100.0, 60.0), 1)
	var grid: GridSensor2D = _grid_2d(1)
	await frames(2)
	check_equal(grid.get_observation().count(0.0), 9, "empty cells")
	grid.position = Vector2(100.0, 40.0)
	check_equal(grid.get_observation()[5], 1.0, "below")
	grid.rotation_degrees = 90.0
	check_equal(grid.get_observation()[7], 1.0, "to the right, once turned")


func test_what_was_seen_last_is_given_while_callbacks_run() -> void:
	var body: StaticBody2D = StaticBody2D.new()
	_box_2d(body, Vector2.ZERO, 1)
	var flat: GridSensor2D = _grid_2d(1)
	var box: StaticBody3D = StaticBody3D.new()
	_box_3d(box, Vector3.ZERO, 1)
	var grid: GridSensor3D = _grid_3d(1)
	await frames(2)
	check_equal([flat.get_observation()[4], grid.get_observation()[4]], [1.0, 1.0], "seen")
	body.free()
	box.free()
	await frames(1)
	RLAddon.Tick.in_scripts = false
	check_equal([flat.get_observation()[4], grid.get_observation()[4]], [1.0, 1.0], "seen last")
	RLAddon.Tick.in_scripts = true
	check_equal([flat.get_observation()[4], grid.get_observation()[4]], [0.0, 0.0], "seen again")


func test_each_cell_counts_each_layer_3d() -> void:
	_box_3d(StaticBody3D.new(), Vector3(1.0, 0.0, -1.0), 1)
	_box_3d(StaticBody3D.new(), Vector3(1.2, 0.2, -1.0), 1)
	_box_3d(StaticBody3D.new(), Vector3(-1.0, 0.0, 0.0), 4)
	_box_3d(StaticBody3D.new(), Vector3(0.0, 0.0, 1.0), 5)
	_box_3d(StaticBody3D.new(), Vector3(0.0, 2.0, 0.0), 1)
	var grid: GridSensor3D = _grid_3d(5)
	await frames(2)
	var left: Array = [0, 0, 0, 1, 0, 0]
	var middle: Array = [0, 0, 0, 0, 1, 1]
	var right: Array = [2, 0, 0, 0, 0, 0]
	check_equal(grid.get_observation(), PackedFloat64Array(left + middle + right), "counts")
	grid.collide_with_bodies = false
	check_equal(grid.get_observation().count(0.0), 18, "empty cells without bodies")


func test_an_area_counts_when_asked_for_3d() -> void:
	_box_3d(Area3D.new(), Vector3(0.0, 0.0, -2.0), 2)
	var grid: GridSensor3D = _grid_3d(2)
	grid.collide_with_areas = true
	grid.grid_size_z = 5
	await frames(2)
	check_equal(grid.get_observation().size(), 15, "cells")
	check_equal(grid.get_observation()[5], 1.0, "count")
	grid.reset()
	RLAddon.Tick.in_scripts = false
	check_equal(grid.get_observation().count(0.0), 15, "forgotten")
	RLAddon.Tick.in_scripts = true


func test_cells_that_an_old_scene_has_saved_are_removed() -> void:
	var flat: GridSensor2D = GridSensor2D.new()
	var grid: GridSensor3D = GridSensor3D.new()
	var cells: Array[Node] = [Area2D.new(), Area3D.new()]
	flat.add_child(cells[0])
	grid.add_child(cells[1])
	for cell: Node in cells:
		cell.name = "GridCell 0 0"
	add_child(flat)
	add_child(grid)
	await frames(2)
	check_equal([flat.get_child_count(), grid.get_child_count()], [0, 0], "children")


func test_warnings_say_what_is_wrong() -> void:
	check_equal(_grid_2d(1)._get_configuration_warnings().size(), 0, "warnings")
	check_equal(_grid_2d(0)._get_configuration_warnings().size(), 1, "without a layer")
	var grid: GridSensor3D = _grid_3d(0)
	grid.collide_with_bodies = false
	check_equal(grid._get_configuration_warnings().size(), 2, "without anything")
	check_equal(grid.get_observation().size(), 0, "numbers")


func _grid_2d(mask: int) -> GridSensor2D:
	var grid: GridSensor2D = GridSensor2D.new()
	grid.detection_mask = mask
	add_child(grid)
	return grid


func _grid_3d(mask: int) -> GridSensor3D:
	var grid: GridSensor3D = GridSensor3D.new()
	grid.detection_mask = mask
	grid.collide_with_bodies = true
	add_child(grid)
	return grid


func _box_2d(thing: CollisionObject2D, at: Vector2, layer: int) -> void:
	thing.add_child(_shape_2d())
	thing.position = at
	thing.collision_layer = layer
	add_child(thing)


func _shape_2d() -> CollisionShape2D:
	var shape: CollisionShape2D = CollisionShape2D.new()
	shape.shape = RectangleShape2D.new()
	shape.shape.size = Vector2(6.0, 6.0)
	return shape


func _box_3d(thing: CollisionObject3D, at: Vector3, layer: int) -> void:
	var shape: CollisionShape3D = CollisionShape3D.new()
	shape.shape = BoxShape3D.new()
	shape.shape.size = 0.4 * Vector3.ONE
	thing.add_child(shape)
	thing.position = at
	thing.collision_layer = layer
	add_child(thing)
