extends RefCounted
## One operator made ready to run. Each family of operators extends this.
##
## `prepare` looks at attributes and constant inputs once, at load; `compute` runs. Both report what
## is wrong by `fail`, before anything is done that GDScript could not survive.

var node: RLRuntime.OnnxNode
var opset: int = 0
## Where inputs are read and outputs written, among the plan's values; -1 for one left out.
var inputs: PackedInt32Array = []
var outputs: PackedInt32Array = []
## The inputs whose value is known at load; null for the others.
var known: Array[RLRuntime.OnnxTensor] = []
var budget: RLRuntime.OnnxBudget
## What went wrong, or "".
var error: String = ""


## Look at attributes and `known` inputs.
func prepare() -> void:
	pass


## The outputs for these inputs; anything once there is an `error`.
func compute(_given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	return []


func fail(what: String) -> Array[RLRuntime.OnnxTensor]:
	if not error:
		error = what
	return []


## Whether a result of this shape may be made, `work` operations an element.
func may_make(dims: PackedInt64Array, work: int = 1) -> bool:
	if not RLRuntime.OnnxShape.is_allowed(dims):
		fail("a tensor of %s" % RLRuntime.OnnxShape.text(dims))
	elif not budget.spend(maxi(1, work) * RLRuntime.OnnxShape.count(dims) + 1):
		fail("it needs more work than is allowed")
	return error.is_empty()


## Whether there are at least `least` inputs and at most `most`, none of the first left out.
func has_inputs(given: Array[RLRuntime.OnnxTensor], least: int, most: int) -> bool:
	if given.size() < least or given.size() > most:
		fail("it has %d inputs" % given.size())
		return false
	for index: int in least:
		if not given[index]:
			fail("input %d is missing" % index)
			return false
	return true


func is_floating(tensor: RLRuntime.OnnxTensor) -> bool:
	if not tensor.is_float():
		fail("it cannot work on %s" % tensor.describe())
	return tensor.is_float()


## An input that may be left out.
func optional(given: Array[RLRuntime.OnnxTensor], index: int) -> RLRuntime.OnnxTensor:
	return given[index] if index < given.size() else null


## The axis counted from the front; sets an error if there is none.
func axis_in(axis: int, rank: int) -> int:
	var found: int = RLRuntime.OnnxShape.axis_of(axis, rank)
	if found < 0:
		fail("axis %d of a tensor of rank %d" % [axis, rank])
	return found


## The whole numbers of a list that is an attribute up to some opset and an input after it.
func list_of(
	given: Array[RLRuntime.OnnxTensor], index: int, fixed: PackedInt64Array
) -> PackedInt64Array:
	var tensor: RLRuntime.OnnxTensor = optional(given, index)
	if not tensor:
		return fixed
	if tensor.is_float() or tensor.rank() > 1:
		fail("input %d should be a list of whole numbers" % index)
		return fixed
	return tensor.ints
