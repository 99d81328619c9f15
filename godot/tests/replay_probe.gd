extends SceneTree
## What a replay shows at given seconds, for tests from outside; one JSON object a line.
##
##   godot --headless --path godot -s res://tests/replay_probe.gd -- --replay=FILE --times=FILE
##
## Numbers are the bytes of doubles in hexadecimal: their text would not be exact.


func _initialize() -> void:
	var options: TagOptions = TagOptions.of_process()
	var times: Variant = JSON.parse_string(FileAccess.get_file_as_string(options.path("times")))
	var replay: TagReplay = TagReplay.new()
	replay.options = options
	root.add_child(replay)
	await process_frame
	for second: float in times:
		replay.hold(second)
		await process_frame
		await process_frame
		print(JSON.stringify(_shown(replay)))
	quit()


func _shown(replay: TagReplay) -> Dictionary:
	var game: TagMatch = replay.arenas[0].game
	var agents: Array[String] = []
	var bodies: Array[String] = []
	for index: int in 2:
		var agent: TagAgent = game.agents[index]
		var numbers: PackedFloat64Array = agent.numbers().slice(0, 8)
		agents.append(numbers.to_byte_array().hex_encode())
		var at: Vector3 = replay.arenas[0].bodies[index].position
		bodies.append(PackedFloat32Array([at.x, at.y, at.z]).to_byte_array().hex_encode())
	return {
		"moment": replay.moment(),
		"tick": game.tick,
		"seeker": game.seeker,
		"end": game.end,
		"winner": game.winner,
		"agents": agents,
		"bodies": bodies,
		"on_floor": [game.agents[0].on_floor, game.agents[1].on_floor],
		"immune_ticks": [game.agents[0].immune_ticks, game.agents[1].immune_ticks],
		"sights":
		[
			game.observations[0].to_byte_array().hex_encode(),
			game.observations[1].to_byte_array().hex_encode(),
		],
	}
