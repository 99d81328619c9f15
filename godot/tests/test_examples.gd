extends TagTest
## The example games by their rules, without a trainer.

const ORCHARD: String = "res://examples/orchard/orchard_arena.tscn"
const MARBLE: String = "res://examples/marble/marble_arena.tscn"


func test_a_seed_is_an_orchard() -> void:
	var arena: OrchardArena = await _begin(ORCHARD)
	var places: Array[PackedVector2Array] = []
	for seed_of_episode: int in [7, 8, 7]:
		arena.restart(seed_of_episode)
		var found: PackedVector2Array = [arena.player.position, arena.fruit.position]
		for thorn: Node2D in arena.get_node(^"Thorns").get_children():
			found.append(thorn.position)
			check(thorn.position.distance_to(arena.fruit.position) > 60.0, "room at the fruit")
			check(thorn.position.distance_to(arena.player.position) > 60.0, "room at the start")
		places.append(found)
	check_equal(places[2], places[0], "the same seed")
	check(places[1] != places[0], "another seed is another orchard")


func test_a_fruit_is_eaten_and_another_grows() -> void:
	var arena: OrchardArena = await _begin(ORCHARD)
	var player: OrchardPlayer = arena.player
	arena.fruit.position = player.position + Vector2(60.0, 0.0)
	_clear_thorns(arena)
	player.controller.reward = 0.0
	player.get_node(^"Approach").reset()
	player.controller.set_action({"run": 4})
	await frames(12)
	check_equal(player.eaten, 1, "fruit eaten")
	check(arena.fruit.position.distance_to(player.position) > 60.0, "another grows elsewhere")
	check_near(player.controller.reward, 1.0 + 0.002 * 30.0, 0.03, "reward")
	check(not player.controller.done, "it goes on")


func test_a_thorn_ends_the_episode() -> void:
	var arena: OrchardArena = await _begin(ORCHARD)
	var player: OrchardPlayer = arena.player
	var start: Vector2 = player.position
	var thorn: Node2D = arena.get_node(^"Thorns/Thorn1")
	thorn.position = player.position + Vector2(0.0, 80.0)
	await frames(2)
	var seen: Array = player.controller.get_obs()["obs"]
	check_equal(seen.size(), 18, "numbers seen")
	# by the two rays that pass 11.25 degrees beside its middle
	check_near(seen.slice(0, 16).max(), 1.0 - 74.9 / 160.0, 0.01, "the thorn is seen")
	player.controller.reward = 0.0
	player.controller.set_action({"run": 2})
	await frames(13)
	check(player.controller.done, "done")
	check_near(player.controller.reward, -1.0, 0.2, "reward")
	await frames(2)
	check(not player.controller.needs_reset, "it began again")
	check(player.position != start, "elsewhere")


func test_the_marble_falls() -> void:
	var arena: MarbleArena = await _begin(MARBLE)
	var ball: MarbleBall = arena.get_node(^"Ball")
	_clear_pillars(arena)
	arena.goal.position = Vector3(-50.0, 0.0, 0.0)
	ball.position = Vector3(4.5, 0.4, 0.0)
	ball.controller.reward = 0.0
	ball.controller.set_action({"push": [1.0, 0.0]})
	var ticks: int = 0
	while not ball.controller.done and ticks < 300:
		await frames(1)
		ticks += 1
	check(ball.controller.done, "done")
	check_near(ball.controller.reward, -1.0, 1e-6, "reward")
	await frames(2)
	check(absf(ball.position.y - 0.4) < 0.05, "it lies on the floor again")
	check(ball.linear_velocity.length() < 0.5, "and is at rest")
	check_equal(ball.score, 0, "score")


func test_the_marble_reaches_the_goal() -> void:
	var arena: MarbleArena = await _begin(MARBLE)
	var ball: MarbleBall = arena.get_node(^"Ball")
	_clear_pillars(arena)
	ball.position = Vector3(-3.0, 0.4, 0.0)
	arena.goal.position = Vector3(2.0, 0.0, 0.0)
	ball.controller.follow()
	ball.controller.get_node(^"Approach").reset()
	ball.controller.reward = 0.0
	ball.controller.set_action({"push": [3.0, 0.0]})
	check_equal(ball.push, Vector2(1.0, 0.0), "a push is limited")
	var ticks: int = 0
	while not ball.controller.done and ticks < 300:
		await frames(1)
		ticks += 1
	check_near(ball.controller.reward, 1.0 + 0.1 * 4.2, 0.05, "reward")
	await frames(2)
	check_equal(ball.score, 1, "score")


## The lower ring of rays meets the floor where there is one.
func test_the_marble_sees_the_edge_and_a_pillar() -> void:
	var arena: MarbleArena = await _begin(MARBLE)
	var ball: MarbleBall = arena.get_node(^"Ball")
	_clear_pillars(arena)
	arena.get_node(^"Pillars/Pillar1").position = Vector3(3.5, 0.0, 0.0)
	arena.goal.position = Vector3(5.0, 0.0, 5.0)
	ball.position = Vector3(5.5, 0.4, 0.0)
	await frames(2)
	var seen: Array = ball.controller.get_obs()["obs"]
	check_equal(seen.size(), 36, "numbers seen")
	# 16 columns from -z over -x, +z and +x; in each below and above
	var floor_near: float = 1.0 - 0.4 / sin(deg_to_rad(15.0)) / 5.0
	check_near(seen[2 * 3], floor_near, 0.01, "floor towards the middle")
	check_equal(seen[2 * 12], 0.0, "no floor beyond the edge")
	check_near(seen[2 * 4 + 1], 1.0 - 1.648 / cos(deg_to_rad(15.0)) / 5.0, 0.01, "pillar")
	check_near(seen[32], -0.05, 0.01, "the goal, aside")
	check_near(seen[33], 0.5, 0.01, "the goal, towards the camera")


func test_a_marbles_time_is_up() -> void:
	var arena: MarbleArena = await _begin(MARBLE)
	var ball: MarbleBall = arena.get_node(^"Ball")
	var start: Vector3 = arena.goal.position
	arena.goal.position = Vector3(50.0, 0.0, 0.0)
	ball.controller.n_steps = 899
	await frames(1)
	check_equal(arena.goal.position.x, 50.0, "not yet")
	await frames(4)
	check_equal(arena.goal.position, start, "it began again")
	check(ball.controller.n_steps < 5, "steps")


func test_copies_stand_apart() -> void:
	for path: String in [
		"res://examples/orchard/orchard.tscn", "res://examples/marble/marble.tscn"
	]:
		var scene: Node = load(path).instantiate()
		scene.get_node(^"Sync").free()
		scene.copies = 6
		add_child(scene)
		check_equal(get_tree().get_node_count_in_group(&"AGENT"), 6, "agents in " + path)
		scene.free()
	var cells: Dictionary[Vector2, bool] = {}
	for index: int in 6:
		cells[ExampleCopies.place(index, 6)] = true
	check_equal(cells.size(), 6, "places")
	check(cells.has(Vector2(-1.0, -0.5)) and cells.has(Vector2(1.0, 0.5)), "around the middle")


## An arena whose first episode has begun, played by the test.
func _begin(path: String) -> Node:
	var arena: Node = load(path).instantiate()
	add_child(arena)
	await frames(2)
	for controller: Node in get_tree().get_nodes_in_group(&"AGENT"):
		controller.heuristic = "model"
	return arena


func _clear_thorns(arena: OrchardArena) -> void:
	for thorn: Node2D in arena.get_node(^"Thorns").get_children():
		thorn.position = Vector2(9999.0, 0.0)


func _clear_pillars(arena: MarbleArena) -> void:
	for pillar: Node3D in arena.get_node(^"Pillars").get_children():
		pillar.position = Vector3(9999.0, 0.0, 0.0)
