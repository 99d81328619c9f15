class_name TagPolicy
extends TagPlayer
## A trained policy from an `.onnx` file of `estragon export tag`, played without Python.

const ACTION_SIZE: int = 3

var _model: GodotRLModel = GodotRLModel.new()


## Open a policy for a role; `error` says why it cannot play.
func _init(path: String, role: String, rules: TagRules) -> void:
	if _model.load(path):
		_check(path, role, rules)
	else:
		error = _model.error


func act(obs: PackedFloat32Array) -> PackedFloat32Array:
	return act_all([obs])[0]


func act_all(observations: Array[PackedFloat32Array]) -> Array[PackedFloat32Array]:
	var actions: Array[PackedFloat32Array] = []
	var predicted: Array[Dictionary] = _model.predict(observations)
	for outputs: Dictionary in predicted:
		actions.append(outputs[GodotRLModel.OUTPUT])
	if predicted.size() != observations.size():
		push_error(_model.error)
		return super(observations)
	return actions


## Our exports state what they were made for; of other files only the sizes can be checked.
func _check(path: String, role: String, rules: TagRules) -> void:
	var about: Dictionary[String, String] = _model.metadata
	var version: String = str(rules.observation_version)
	var shapes: Array[PackedInt64Array] = _model.observation_shapes().values()
	if about.get("role", role) != role:
		error = "%s was trained as %s, not as %s" % [path, about["role"], role]
	elif about.get("observation_version", version) != version:
		error = (
			"%s sees by version %s, this game has %s: train it again"
			% [path, about["observation_version"], version]
		)
	elif shapes.size() != 1 or shapes[0] != PackedInt64Array([-1, rules.observation_size]):
		error = "%s takes %s, this game gives %d numbers" % [path, shapes, rules.observation_size]
	elif _model.output_size() != ACTION_SIZE or not GodotRLModel.OUTPUT in _model.output_names():
		error = (
			"%s gives %d numbers instead of move_x, move_z, jump" % [path, _model.output_size()]
		)
