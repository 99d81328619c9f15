@tool
extends MeshInstance3D
## Lines in the frame of its parent, seen only while somebody debugs; never saved with a scene.

var _lines: ArrayMesh = ArrayMesh.new()


func _init() -> void:
	mesh = _lines
	cast_shadow = GeometryInstance3D.SHADOW_CASTING_SETTING_OFF
	var paint: StandardMaterial3D = StandardMaterial3D.new()
	paint.shading_mode = BaseMaterial3D.SHADING_MODE_UNSHADED
	paint.transparency = BaseMaterial3D.TRANSPARENCY_ALPHA
	paint.vertex_color_use_as_albedo = true
	material_override = paint


## Draw from each even point to the next, each point in its colour, instead of what was drawn.
func show_lines(points: PackedVector3Array, colors: PackedColorArray) -> void:
	_lines.clear_surfaces()
	if points.is_empty():
		return
	var arrays: Array = []
	arrays.resize(Mesh.ARRAY_MAX)
	arrays[Mesh.ARRAY_VERTEX] = points
	arrays[Mesh.ARRAY_COLOR] = colors
	_lines.add_surface_from_arrays(Mesh.PRIMITIVE_LINES, arrays)
