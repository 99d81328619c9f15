extends Node2D
## Counters side by side, in which everything is known in advance; the command line says what.
##
##   --agents=2      how many counters there are
##   --join=30       one more comes in this tick; --leave=30: the first goes
##   --wire=5005     another node sets this port, as Sync's; --repeat=3, --mode=2: and the rest
##   --quit=50       it ends in this tick; --unlearn=40: Delete is pressed
##   --report=300    in this tick it says how things are
##   (the rest is for every counter: see counter.gd)

var ticks: int = 0

var _joins: int = option("join", -1)
var _leaves: int = option("leave", -1)
var _reports: int = option("report", -1)
var _quits: int = option("quit", -1)
var _unlearns: int = option("unlearn", -1)


func _ready() -> void:
	for i: int in option("agents", 1):
		_add(i)
	var sync: Sync = get_tree().root.find_children("*", "Sync", true, false)[0]
	sync.port = option("wire", sync.port)
	sync.control_mode = option("mode", sync.control_mode) as Sync.ControlModes
	sync.action_repeat = option("repeat", sync.action_repeat)


func _physics_process(_delta: float) -> void:
	ticks += 1
	if ticks == _joins:
		_add(get_tree().get_node_count_in_group(&"AGENT"))
	if ticks == _leaves:
		get_node("Counter0").queue_free()
	if ticks == _reports:
		var counter: Node2D = get_node("Counter0")
		print("heuristic %s, done %d" % [counter.ai_controller.heuristic, counter.ends])
	if ticks == _unlearns:
		var press: InputEventKey = InputEventKey.new()
		press.keycode = KEY_DELETE
		press.pressed = true
		Input.parse_input_event(press)
	if ticks == _quits:
		get_tree().quit()


## A whole number from the command line.
static func option(key: String, otherwise: int) -> int:
	for word: String in OS.get_cmdline_args():
		if word.begins_with("--%s=" % key):
			return int(word.get_slice("=", 1))
	return otherwise


func _add(number: int) -> void:
	var counter: Node2D = preload("counter.gd").new()
	counter.name = "Counter%d" % number
	counter.number = number
	add_child(counter)
