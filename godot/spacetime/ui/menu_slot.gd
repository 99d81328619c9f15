class_name MenuSlot
extends StaticBody3D
## A place of the menu that shows an element, which the controller's ray hits.

const SIZE: Vector3 = Vector3(0.7, 0.24, 0.04)
const LAYER: int = 8
const TEXT: Color = Color(0.97, 0.98, 1.0)
const COLORS: Dictionary[String, Color] = {
	"usual": Color(0.13, 0.2, 0.34),
	"focused": Color(0.15, 0.36, 0.62),
	"disabled": Color(0.22, 0.22, 0.24),
}

var kind: MenuTree.Kind = MenuTree.Kind.DISABLED
var is_shown: bool = false
var is_focused: bool = false
## Of a slider or toggle, 0 to 1.
var value: float = 0.0

var _text: String = ""
var _shape: CollisionShape3D = CollisionShape3D.new()
var _plate: MeshInstance3D = MeshInstance3D.new()
var _bar: MeshInstance3D = MeshInstance3D.new()
var _label: Label3D = Label3D.new()


func _init() -> void:
	collision_layer = LAYER
	collision_mask = 0
	_shape.shape = BoxShape3D.new()
	_shape.shape.size = SIZE
	for mesh: MeshInstance3D in [_plate, _bar]:
		mesh.mesh = BoxMesh.new()
		mesh.mesh.material = StandardMaterial3D.new()
		# Unshaded: it can be read in any light.
		mesh.mesh.material.shading_mode = BaseMaterial3D.SHADING_MODE_UNSHADED
	_plate.mesh.size = SIZE
	_bar.mesh.material.albedo_color = Color(0.98, 0.72, 0.2)
	_bar.position = Vector3(0.0, -0.09, 0.5 * SIZE.z + 0.004)
	_label.font_size = 40
	_label.pixel_size = 0.002
	_label.modulate = TEXT
	_label.position = Vector3(0.0, 0.02, 0.5 * SIZE.z + 0.006)
	for child: Node in [_shape, _plate, _bar, _label]:
		add_child(child)


## The contrast of text and plate after WCAG 2; 4.5 can be read by nearly everyone.
static func contrast(plate: Color) -> float:
	var ours: float = TEXT.srgb_to_linear().get_luminance()
	return (ours + 0.05) / (plate.srgb_to_linear().get_luminance() + 0.05)


func is_enabled() -> bool:
	return is_shown and kind not in [MenuTree.Kind.DISABLED, MenuTree.Kind.DROP]


func show_element(page: String, slot: int) -> void:
	is_shown = slot < MenuTree.PAGES[page].size()
	kind = MenuTree.kind_of(page, slot)
	_text = MenuTree.text_of(page, slot) if is_shown else ""
	is_focused = false
	visible = is_shown
	if _shape.disabled == is_shown:
		_shape.disabled = not is_shown


## Draw what has changed; only for people.
func draw() -> void:
	var look: String = "focused" if is_focused else "usual"
	if kind in [MenuTree.Kind.DISABLED]:
		look = "disabled"
	_plate.mesh.material.albedo_color = COLORS[look]
	_bar.visible = kind == MenuTree.Kind.SLIDER
	_bar.mesh.size = Vector3(maxf(0.62 * value, 0.01), 0.03, 0.005)
	_bar.position.x = 0.31 * (value - 1.0)
	_label.text = _text
	if kind == MenuTree.Kind.TOGGLE:
		_label.text += ": on" if value > 0.5 else ": off"
