extends Node
## Actors as a file says, and what happens to them when; at the end it is told what they did.
##
##   --play=FILE.json   {"sync": {property: value}, "actors": [{…}], "ticks": 60,
##                       "events": {tick: [{"do": "set" | "add" | "free" | …, …}]}}

var tick: int = 0

var _play: Dictionary = {}
var _acts: Dictionary[String, Array] = {}


func _ready() -> void:
	for word: String in OS.get_cmdline_args():
		if word.begins_with("--play="):
			_play = JSON.parse_string(FileAccess.get_file_as_string(word.trim_prefix("--play=")))
	for key: String in _play["sync"]:
		$Sync.set(key, _play["sync"][key])
	for actor: Dictionary in _play["actors"]:
		_add(actor)


func _physics_process(_delta: float) -> void:
	tick += 1
	for event: Dictionary in _play.get("events", {}).get(str(tick), []):
		match event["do"]:
			"set":
				get_node(event["node"]).set(event["key"], event["value"])
			"give":
				var model: GodotRLModel = GodotRLModel.new()
				model.load(event["value"])
				get_node(event["node"]).onnx_model = model
			"add":
				_add(event["actor"])
			"free":
				get_node(event["node"]).queue_free()
			"copy":
				DirAccess.copy_absolute(event["from"], event["to"])
			"press":
				var press: InputEventKey = InputEventKey.new()
				press.keycode = OS.find_keycode_from_string(event["key"])
				press.pressed = true
				Input.parse_input_event(press)
			"picture":
				get_viewport().get_texture().get_image().save_png(event["to"])
			"sleep":
				OS.delay_msec(event["value"])
	if tick == int(_play["ticks"]):
		_report()
		get_tree().quit()


## An actor has done something.
func note(actor: String, count: int, action: Dictionary) -> void:
	_acts[actor].append({"tick": tick, "count": count, "action": action})


func _add(actor: Dictionary) -> void:
	var body: Node = Node3D.new() if actor.get("is_3d") else Node2D.new()
	body.set_script(load("res://actor_3d.gd" if actor.get("is_3d") else "res://actor_2d.gd"))
	body.name = actor["name"]
	body.says = actor
	_acts[actor["name"]] = []
	add_child(body)


func _report() -> void:
	var heuristics: Dictionary = {}
	for actor: Node in get_children():
		if actor is AIController2D or actor is AIController3D:
			heuristics[actor.name] = actor.heuristic
	print("REPORT " + JSON.stringify({"acts": _acts, "heuristics": heuristics}))
