class_name OnnxPlain
extends RefCounted
## A network of dense layers in plain loops, as one would write it first; to measure against.

var _sizes: PackedInt64Array
var _weights: Array[PackedFloat32Array] = []
var _input: PackedFloat32Array = []


func _init(sizes: PackedInt64Array) -> void:
	_sizes = sizes
	for layer: int in sizes.size() - 1:
		var weights: PackedFloat32Array = []
		for _weight: int in sizes[layer] * sizes[layer + 1]:
			weights.append(randf_range(-0.2, 0.2))
		_weights.append(weights)
	for _number: int in sizes[0]:
		_input.append(randf())


func run() -> PackedFloat32Array:
	var values: PackedFloat32Array = _input
	for layer: int in _weights.size():
		var weights: PackedFloat32Array = _weights[layer]
		var made: PackedFloat32Array = []
		made.resize(_sizes[layer + 1])
		for row: int in made.size():
			var sum: float = 0.0
			var at: int = row * values.size()
			for index: int in values.size():
				sum += weights[at + index] * values[index]
			made[row] = tanh(sum)
		values = made
	return values
