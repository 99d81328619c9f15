extends Node2D
## Counters side by side, in which everything is known in advance; the command line says what.
##
##   --agents=2      how many counters there are
##   --join=30       one more comes in this tick; --leave=30: the first goes
##   (the rest is for every counter: see counter.gd)

var ticks: int = 0


func _ready() -> void:
	for i: int in option("agents", 1):
		_add(i)


func _physics_process(_delta: float) -> void:
	ticks += 1
	if ticks == option("join", -1):
		_add(get_tree().get_node_count_in_group(&"AGENT"))
	if ticks == option("leave", -1):
		get_node("Counter0").queue_free()


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
