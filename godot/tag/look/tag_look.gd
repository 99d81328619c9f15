@tool
class_name TagLook
extends RefCounted
## The colours of everything that is drawn, and whether anything is drawn at all.

## The colours that mean a role, as in every chart and film.
const ROLES: Dictionary[String, Color] = {"seeker": Color("d1495b"), "hider": Color("2e6f95")}
const INK: Color = Color("3a342c")
const PALE: Color = Color("fbfaf6")
const TILE: Color = Color("eeebe4")
const OTHER_TILE: Color = Color("e8e4dc")
const LINE: Color = Color("d5cfc3")
const WALL: Color = Color("a89e90")
const SLAB: Color = Color("7d7366")
const LOW: Color = Color("ecc177")
const TALL: Color = Color("737981")

## Without a screen nothing is built that could be seen; whoever tests the looks sets it.
static var wanted: bool = DisplayServer.get_name() != "headless"


## The role that an agent of a match plays now.
static func role_of(game: TagMatch, agent: int) -> String:
	return "seeker" if agent == game.seeker else "hider"


## A matt surface.
static func matt(colour: Color) -> StandardMaterial3D:
	var material: StandardMaterial3D = StandardMaterial3D.new()
	material.albedo_color = colour
	material.roughness = 0.9
	material.metallic_specular = 0.2
	return material


## A surface that no light changes, seen through, in the colours of its vertices.
static func glow() -> StandardMaterial3D:
	var material: StandardMaterial3D = StandardMaterial3D.new()
	material.shading_mode = BaseMaterial3D.SHADING_MODE_UNSHADED
	material.transparency = BaseMaterial3D.TRANSPARENCY_ALPHA
	material.cull_mode = BaseMaterial3D.CULL_DISABLED
	material.vertex_color_use_as_albedo = true
	material.vertex_color_is_srgb = true
	return material


## A mesh in its place, with a surface.
static func piece(mesh: Mesh, material: Material, at: Vector3 = Vector3.ZERO) -> MeshInstance3D:
	var instance: MeshInstance3D = MeshInstance3D.new()
	instance.mesh = mesh
	instance.material_override = material
	instance.position = at
	return instance
