extends CanvasLayer
## An overlay with one agent's observation, action and value. Tab selects the next agent, Shift+Tab
## the previous one. Sync adds it on first use; while hidden it does nothing.

const ABOVE_THE_GAME: int = 127

var _groups: RLAddon.AgentGroups
var _panel: RLAddon.OverlayPanel = RLAddon.OverlayPanel.new()
## The node of the selected agent.
var _chosen: Node


func _init(groups: RLAddon.AgentGroups, key: int) -> void:
	_groups = groups
	_panel.hint = "%s hides it, Tab shows the next" % OS.get_keycode_string(key)
	layer = ABOVE_THE_GAME
	process_mode = Node.PROCESS_MODE_ALWAYS
	process_physics_priority = 1 << 29
	add_child(_panel)


func _ready() -> void:
	_look()


func _physics_process(_delta: float) -> void:
	_look()


func _input(event: InputEvent) -> void:
	if event is InputEventKey and event.keycode == KEY_TAB and event.is_pressed():
		_go(-1 if event.shift_pressed else 1)
		get_viewport().set_input_as_handled()


## Show or hide it.
func toggle() -> void:
	visible = not visible
	set_physics_process(visible)
	set_process_input(visible)
	if visible:
		_look()


func _go(steps: int) -> void:
	var nodes: Array[Node] = RLAddon.AgentStatus.nodes(_groups)
	if nodes:
		_chosen = nodes[posmod(nodes.find(_chosen) + steps, nodes.size())]
	_look()


func _look() -> void:
	var nodes: Array[Node] = RLAddon.AgentStatus.nodes(_groups)
	var index: int = nodes.find(_chosen) if is_instance_valid(_chosen) else -1
	if index < 0 and nodes:
		index = 0
		_chosen = nodes[0]
	_panel.status = RLAddon.AgentStatus.new(_groups, _chosen) if nodes else null
	_panel.place = "%d of %d" % [index + 1, nodes.size()] if nodes else "no agents"
	_panel.queue_redraw()
