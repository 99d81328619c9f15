extends RLRuntime.OnnxStep
## Operators that hand on their input as it is: Identity, and Dropout, which does nothing in play.


func prepare() -> void:
	if node.op == "Dropout":
		node.ignore(["ratio", "seed"])


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, 3):
		return []
	if node.outputs.size() < 2:
		return [given[0]]
	var all: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.zeros(
		given[0].dims, RLRuntime.OnnxTensor.Type.BOOL
	)
	all.ints.fill(1)
	return [given[0], all]
