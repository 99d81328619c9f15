extends RLRuntime.OnnxStep
## Gemm and MatMul. With constant weights this is a dense layer: its matrix is made ready at load,
## and a bias and an activation that follow are taken in.

const ACTIVATIONS: PackedStringArray = ["Relu", "Tanh", "Sigmoid"]

## The activation taken in, or "".
var activation: String = ""

var _is_gemm: bool = false
var _alpha: float = 1.0
var _beta: float = 1.0
var _turns_left: bool = false
var _turns_right: bool = false
var _weights: RLRuntime.OnnxTensor
var _bias: PackedFloat32Array = []
var _dense: RLRuntime.OnnxDense
## What was found out for the shape that came last.
var _seen: PackedInt64Array = [-1]
var _shape: PackedInt64Array = []
var _rows: int = 0
var _cost: int = 0


func prepare() -> void:
	_is_gemm = node.op == "Gemm"
	if _is_gemm:
		_alpha = node.real("alpha", 1.0)
		_beta = node.real("beta", 1.0)
		_turns_left = node.whole("transA") != 0
		_turns_right = node.whole("transB") != 0
	if known.size() < 2 or not known[1] or known[1].rank() != 2 or not known[1].is_float():
		return
	if _is_gemm and (_turns_left or _alpha != 1.0 or _beta != 1.0):
		return
	_weights = known[1]
	if known.size() > 2 and inputs[2] >= 0 and not (known[2] and absorb_bias(known[2])):
		_weights = null


## Take in a constant vector that is added to every row; false if it is none.
func absorb_bias(bias: RLRuntime.OnnxTensor) -> bool:
	if not is_dense() or activation or not bias.is_float():
		return false
	var width: int = _weights.dims[0 if _turns_right else 1]
	var is_row: bool = bias.count() == width and (bias.rank() == 0 or bias.dims[-1] == width)
	if _bias or not is_row or bias.rank() > 2:
		return false
	_bias = bias.floats
	_dense = null
	return true


## Take in the operator that follows; false if it cannot be.
func absorb_activation(op: String) -> bool:
	if not is_dense() or activation or op not in ACTIVATIONS:
		return false
	activation = op
	return true


func is_dense() -> bool:
	return _weights != null


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 2, 3 if _is_gemm else 2):
		return []
	if not is_floating(given[0]) or not is_floating(given[1]):
		return []
	if is_dense():
		return _layer(given[0])
	return _gemm(given) if _is_gemm else _matmul(given[0], given[1])


func _layer(left: RLRuntime.OnnxTensor) -> Array[RLRuntime.OnnxTensor]:
	if left.dims != _seen:
		_fit(left)
	if error or not budget.spend(_cost):
		return fail("it needs more work than is allowed")
	return [
		RLRuntime.OnnxTensor.of_floats(_dense.activated(left.floats, _rows, activation), _shape)
	]


## Get ready for a shape; it mostly comes again.
func _fit(left: RLRuntime.OnnxTensor) -> void:
	_seen = [-1]
	var depth: int = _weights.dims[1 if _turns_right else 0]
	var width: int = _weights.dims[0 if _turns_right else 1]
	var rank: int = left.rank()
	if rank == 0 or left.dims[rank - 1] != depth or (_is_gemm and rank != 2):
		fail("%s does not go with %s" % [left.describe(), _weights.describe()])
		return
	_shape = left.dims.duplicate()
	_shape[rank - 1] = width
	_rows = RLRuntime.OnnxShape.count(left.dims.slice(0, rank - 1))
	_cost = 1 + ((depth + 15) >> 4) * _rows * width
	if not may_make(_shape):
		return
	if not _dense:
		if not budget.spend(depth * width):
			fail("it needs more work than is allowed")
			return
		_dense = RLRuntime.OnnxDense.new(_weights.floats, depth, width, _turns_right, _bias)
	_seen = left.dims


func _gemm(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	var left: RLRuntime.OnnxTensor = given[0]
	var right: RLRuntime.OnnxTensor = given[1]
	if left.rank() != 2 or right.rank() != 2:
		return fail("%s does not go with %s" % [left.describe(), right.describe()])
	if _turns_left:
		left = turned(left)
	var depth: int = left.dims[1]
	var width: int = right.dims[0 if _turns_right else 1]
	var shape: PackedInt64Array = [left.dims[0], width]
	if right.dims[1 if _turns_right else 0] != depth:
		return fail("%s does not go with %s" % [given[0].describe(), right.describe()])
	if not may_make(shape, depth):
		return []
	var dense: RLRuntime.OnnxDense = RLRuntime.OnnxDense.new(
		right.floats, depth, width, _turns_right
	)
	var made: PackedFloat32Array = dense.multiply(left.floats, left.dims[0])
	var added: PackedFloat32Array = []
	if optional(given, 2):
		if (
			RLRuntime.OnnxShape.broadcast(given[2].dims, shape) != shape
			or not is_floating(given[2])
		):
			return fail(
				"%s cannot be added to %s" % [given[2].describe(), RLRuntime.OnnxShape.text(shape)]
			)
		added = RLRuntime.OnnxShape.spread(given[2], shape).floats
	for index: int in made.size():
		made[index] = _alpha * made[index] + (_beta * added[index] if added else 0.0)
	return [RLRuntime.OnnxTensor.of_floats(made, shape)]


## Matrices are the last two axes; those before are repeated to fit. A vector is a matrix of one
## row on the left, of one column on the right.
func _matmul(
	left: RLRuntime.OnnxTensor, right: RLRuntime.OnnxTensor
) -> Array[RLRuntime.OnnxTensor]:
	if left.rank() == 0 or right.rank() == 0:
		return fail("%s does not go with %s" % [left.describe(), right.describe()])
	var a: PackedInt64Array = left.dims if left.rank() > 1 else PackedInt64Array([1, left.dims[0]])
	var b: PackedInt64Array = right.dims if right.rank() > 1 else _column(right.dims[0])
	var height: int = a[-2]
	var depth: int = a[-1]
	var width: int = b[-1]
	var outer: PackedInt64Array = RLRuntime.OnnxShape.broadcast(
		a.slice(0, a.size() - 2), b.slice(0, b.size() - 2)
	)
	if b[-2] != depth or outer.has(-1):
		return fail("%s does not go with %s" % [left.describe(), right.describe()])
	var full: PackedInt64Array = outer.duplicate()
	full.append_array([height, width])
	if not may_make(full, depth):
		return []
	var lefts: PackedInt64Array = _matrices(a, outer)
	var rights: PackedInt64Array = _matrices(b, outer)
	var made: PackedFloat32Array = []
	var dense: RLRuntime.OnnxDense
	var packed: int = -1
	for index: int in lefts.size():
		if rights[index] != packed:
			packed = rights[index]
			var from: int = packed * depth * width
			dense = RLRuntime.OnnxDense.new(
				right.floats.slice(from, from + depth * width), depth, width
			)
		var at: int = lefts[index] * height * depth
		made.append_array(dense.multiply(left.floats.slice(at, at + height * depth), height))
	if left.rank() == 1:
		full.remove_at(full.size() - 2)
	if right.rank() == 1:
		full.remove_at(full.size() - 1)
	return [RLRuntime.OnnxTensor.of_floats(made, full)]


## Which matrix of a stack of this shape is used at each place of the outer shape.
func _matrices(dims: PackedInt64Array, outer: PackedInt64Array) -> PackedInt64Array:
	var own: PackedInt64Array = dims.slice(0, dims.size() - 2)
	var numbers: PackedInt64Array = RLRuntime.OnnxShape.multiples(RLRuntime.OnnxShape.count(own), 1)
	return RLRuntime.OnnxShape.spread(RLRuntime.OnnxTensor.of_ints(numbers, own), outer).ints


func _column(size: int) -> PackedInt64Array:
	return [size, 1]


static func turned(matrix: RLRuntime.OnnxTensor) -> RLRuntime.OnnxTensor:
	var height: int = matrix.dims[0]
	var width: int = matrix.dims[1]
	var lists: Array[PackedInt64Array] = [
		RLRuntime.OnnxShape.multiples(width, 1), RLRuntime.OnnxShape.multiples(height, width)
	]
	return matrix.taken(RLRuntime.OnnxShape.places(lists), [width, height])
