class_name MenuRoom
extends FeatureIsland
## A person in front of a menu who is to operate one of its elements: press a button, switch a
## toggle, drag a slider to a value, drag an item to the belt. Operating another one fails.

const SLOTS: int = 4
const PANEL: Vector3 = Vector3(0.0, 1.45, -2.0)
const SPAN: Vector2 = Vector2(0.8, 0.5)
const RATE_RAD: float = 1.2
const SLIDER_M: float = 0.31
const CLOSE_ENOUGH: float = 0.1
const RAY_M: float = 5.0
const REWARDS: Dictionary[String, float] = {
	"page": 2.0,
	"done": 5.0,
	"dead": -2.0,
	"missed": -0.02,
	"wrong": -2.0,
	"per_metre": 1.0,
	"held": 1.0,
}

var slots: Array[MenuSlot] = []
var leaves: Array[Array] = MenuTree.leaves()
var settings: SettingsStore = SettingsStore.new()
var page: String = "main"
## Which leaf is to be operated, and to what value.
var goal: int = 0
var goal_value: float = 0.0
## Where the ray meets the menu, in m from its middle, and the slot there.
var pointer: Vector2 = Vector2.ZERO
var hit_slot: int = -1
## The slot whose slider or item the grip holds.
var held_slot: int = -1
## The farthest that the physics' hit was from where the ray meets the plane of the menu.
var pointer_error_m: float = 0.0
var presses: int = 0
var dead_presses: int = 0

var _aim: Vector2 = Vector2.ZERO
var _was_pressed: bool = false
var _is_persistent: bool = false
var _potential: float = 0.0
var _ray: PhysicsRayQueryParameters3D = PhysicsRayQueryParameters3D.new()
## An element that does not respond, to test that this is noticed.
var _broken: String = ""

@onready var rig: VRRig = $Rig
@onready var agent: UIInteractionController = $Rig/AIController3D
@onready var _title: Label3D = $Title
@onready var _laser: Node3D = $Laser


func setup() -> void:
	for slot: int in SLOTS:
		slots.append(MenuSlot.new())
		slots[slot].position = PANEL + place_of(slot)
		add_child(slots[slot])
	_ray.collision_mask = MenuSlot.LAYER
	rig.place(Vector3.ZERO, 0.0)
	settings.read()


func begin() -> void:
	_is_persistent = parameter("persist", 0.0) > 0.5
	_broken = RLParameters.text("broken", "", agent)
	goal = int(parameter("leaf", -1.0))
	if goal < 0 or goal >= leaves.size():
		goal = random.randi_range(0, leaves.size() - 1)
	goal_value = random.randf()
	for leaf: Array in leaves:
		if not agent.heuristic == "human":
			settings.values[MenuTree.text_of(leaf[0], leaf[1])] = snappedf(random.randf(), 0.01)
	_aim = Vector2(random.randf_range(-0.3, 0.3), random.randf_range(-0.15, 0.25))
	held_slot = -1
	presses = 0
	dead_presses = 0
	pointer_error_m = 0.0
	_was_pressed = false
	_start_on_way()
	_look()
	_potential = _potential_now()


func tick(delta: float) -> void:
	_aim += agent.point * RATE_RAD * delta
	_aim = _aim.clamp(Vector2(-0.55, -0.35), Vector2(0.55, 0.55))
	_look()
	var now: int = ticks
	if held_slot >= 0 or agent.grip:
		_drag()
	var is_pressed: bool = agent.trigger and not _was_pressed
	# A hand that drags does not press: else a page could be opened with what is held.
	if is_pressed and ticks == now and held_slot < 0:
		_press()
	_was_pressed = agent.trigger
	if ticks != now:
		return
	var potential: float = _potential_now()
	agent.reward += potential - _potential
	_potential = potential


func steer_by_hand() -> void:
	agent.point = HandInput.stick()
	agent.trigger = Input.is_physical_key_pressed(KEY_SPACE)
	agent.grip = Input.is_key_pressed(KEY_SHIFT)


func _process(_delta: float) -> void:
	if DisplayServer.get_name() == "headless":
		return
	for slot: MenuSlot in slots:
		slot.draw()
	var leaf: Array = leaves[goal]
	_title.text = "%s: %s" % [leaf[0], MenuTree.text_of(leaf[0], leaf[1])]
	if MenuTree.kind_of(leaf[0], leaf[1]) == MenuTree.Kind.SLIDER:
		_title.text += " to %d%%" % roundi(100.0 * goal_value)
	rig.right_hand.rotation = Vector3(_aim.y, -_aim.x, 0.0)
	var from: Vector3 = _hand()
	var way: Vector3 = PANEL + Vector3(pointer.x, pointer.y, 0.0) - from
	_laser.transform = Transform3D(Basis.looking_at(way), from).scaled_local(
		Vector3(1.0, 1.0, way.length())
	)


func describe(_agent: FeatureAgent) -> Dictionary:
	return {
		"leaf": goal,
		"depth": MenuTree.path_to(page).size(),
		"wrong": false,
		"presses": presses,
		"dead_presses": dead_presses,
		"pointer_error_mm": 1000.0 * pointer_error_m,
	}


## The middle of a slot, from that of the panel.
static func place_of(slot: int) -> Vector3:
	return Vector3(-0.4 if slot % 2 == 0 else 0.4, 0.2 if slot < 2 else -0.2, 0.0)


## The slot that brings the task forward.
func next_slot() -> int:
	var leaf: Array = leaves[goal]
	if page != leaf[0]:
		return MenuTree.slot_toward(page, leaf[0])
	if held_slot >= 0 and slots[held_slot].kind == MenuTree.Kind.ITEM:
		return MenuTree.slot_of(page, MenuTree.Kind.DROP)
	return leaf[1]


## Show the main page, or one on the way to the leaf; an item may be held already.
func _start_on_way() -> void:
	var share: float = parameter("start_on_way", 0.0)
	if random.randf() >= share:
		_show("main")
		return
	var leaf: Array = leaves[goal]
	var way: Array[String] = MenuTree.path_to(leaf[0])
	_show(way[random.randi_range(0, way.size() - 1)])
	if page == leaf[0] and slots[leaf[1]].kind == MenuTree.Kind.ITEM and random.randf() < share:
		held_slot = leaf[1]


func _hand() -> Vector3:
	return rig.right_hand.position


func _show(next: String) -> void:
	page = next
	held_slot = -1
	for slot: int in SLOTS:
		slots[slot].show_element(page, slot)
		if slots[slot].is_shown:
			slots[slot].value = settings.values.get(MenuTree.text_of(page, slot), 0.0)


## Cast the ray, and focus what it hits.
func _look() -> void:
	var toward: Vector3 = Vector3(sin(_aim.x), tan(_aim.y), -cos(_aim.x))
	var front: float = PANEL.z + 0.5 * MenuSlot.SIZE.z
	var at: Vector3 = _hand() + toward * (front - _hand().z) / toward.z
	pointer = Vector2(at.x - PANEL.x, at.y - PANEL.y)
	_ray.from = global_position + _hand()
	_ray.to = _ray.from + toward.normalized() * RAY_M
	var hit: Dictionary = get_world_3d().direct_space_state.intersect_ray(_ray)
	hit_slot = slots.find(hit["collider"]) if hit else -1
	# Not where it meets an edge: that is behind the plane.
	if hit and hit["normal"].z > 0.5:
		pointer_error_m = maxf(pointer_error_m, (hit["position"] - global_position).distance_to(at))
	for slot: int in SLOTS:
		slots[slot].is_focused = slot == hit_slot


func _press() -> void:
	presses += 1
	if hit_slot < 0:
		agent.reward += REWARDS["missed"]
		return
	var slot: MenuSlot = slots[hit_slot]
	if not slot.is_enabled() or MenuTree.text_of(page, hit_slot) == _broken:
		dead_presses += 1
		agent.reward += REWARDS["dead"]
	elif slot.kind in [MenuTree.Kind.PAGE, MenuTree.Kind.BACK]:
		_show(MenuTree.PAGES[page][hit_slot][2])
	elif slot.kind in [MenuTree.Kind.BUTTON, MenuTree.Kind.TOGGLE]:
		if slot.kind == MenuTree.Kind.TOGGLE:
			slot.value = 0.0 if slot.value > 0.5 else 1.0
		_operate(hit_slot, true)


func _drag() -> void:
	if held_slot < 0:
		var kinds: Array[MenuTree.Kind] = [MenuTree.Kind.SLIDER, MenuTree.Kind.ITEM]
		if hit_slot >= 0 and slots[hit_slot].kind in kinds:
			held_slot = hit_slot
		return
	var slot: MenuSlot = slots[held_slot]
	if slot.kind == MenuTree.Kind.SLIDER:
		var along: float = pointer.x - place_of(held_slot).x
		slot.value = clampf(0.5 + 0.5 * along / SLIDER_M, 0.0, 1.0)
	if agent.grip:
		return
	var released: int = held_slot
	held_slot = -1
	if slot.kind == MenuTree.Kind.SLIDER:
		_operate(released, absf(slot.value - goal_value) < CLOSE_ENOUGH)
	elif hit_slot >= 0 and slots[hit_slot].kind == MenuTree.Kind.DROP:
		_operate(released, true)


## A leaf was operated; is it the right one, and has it the right value?
func _operate(slot: int, is_right_value: bool) -> void:
	settings.values[MenuTree.text_of(page, slot)] = slots[slot].value
	if agent.heuristic == "human" or _is_persistent:
		settings.save()
	if leaves[goal] != [page, slot]:
		agent.reward += REWARDS["wrong"]
		end({"wrong": true})
	elif is_right_value:
		agent.reward += REWARDS["done"]
		end({"success": true})


## Fewer pages away, and nearer to what is to be done next; of a slider also nearer to its value. It
## depends on the state alone, so that no way round pays.
func _potential_now() -> float:
	var slot: int = next_slot()
	var aim: Vector3 = place_of(slot)
	var potential: float = -REWARDS["page"] * MenuTree.distance(page, leaves[goal][0])
	var per_metre: float = REWARDS["per_metre"]
	if held_slot >= 0 and held_slot == slot and slots[slot].kind == MenuTree.Kind.SLIDER:
		aim.x += (2.0 * goal_value - 1.0) * SLIDER_M
		potential += REWARDS["held"]
	elif held_slot >= 0 and page == leaves[goal][0] and held_slot == leaves[goal][1]:
		# The belt is about a metre away: taking the item must still bring the task forward, and
		# most of the way is to carry it.
		potential += 2.0 * REWARDS["held"]
		per_metre *= 2.0
	return potential - per_metre * pointer.distance_to(Vector2(aim.x, aim.y))
