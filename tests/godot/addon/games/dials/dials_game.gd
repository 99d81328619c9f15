extends Node2D
## Agents that see the parameters which they read when their episode starts.
##
##   --agents=2        how many there are; their episodes last 10, 11, 12, … ticks
##   --order=asks      how a game is reset: see dial.gd
##   --join=30         one more comes in this tick; --leave=30: the first goes
##   --report=5        people play; in this tick it prints what the first one read, and ends

var ticks: int = 0

var _joins: int = option("join", "-1").to_int()
var _leaves: int = option("leave", "-1").to_int()
var _reports: int = option("report", "-1").to_int()


func _ready() -> void:
	if _reports > 0:
		$Sync.control_mode = Sync.ControlModes.HUMAN
	for i: int in option("agents", "1").to_int():
		_add(i)


func _physics_process(_delta: float) -> void:
	ticks += 1
	if ticks == _joins:
		_add(get_tree().get_node_count_in_group(&"AGENT"))
	if ticks == _leaves:
		get_node(^"Dial0").queue_free()
	if ticks == _reports:
		print("REPORT " + JSON.stringify(get_node(^"Dial0").ai_controller.tell()))
		get_tree().quit()


static func option(key: String, otherwise: String) -> String:
	for word: String in OS.get_cmdline_args():
		if word.begins_with("--%s=" % key):
			return word.get_slice("=", 1)
	return otherwise


func _add(number: int) -> void:
	var dial: Node2D = preload("dial.gd").new()
	dial.name = "Dial%d" % number
	dial.number = number
	add_child(dial)
