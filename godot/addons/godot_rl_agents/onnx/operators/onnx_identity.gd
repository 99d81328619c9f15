extends RLAddon.OnnxStep
## Operators that hand on their input as it is: Identity, and Dropout, which does nothing in play.


func prepare() -> void:
	if node.op == "Dropout":
		node.ignore(["ratio", "seed"])


func compute(given: Array[RLAddon.OnnxTensor]) -> Array[RLAddon.OnnxTensor]:
	if not has_inputs(given, 1, 3):
		return []
	if node.outputs.size() < 2:
		return [given[0]]
	var all: RLAddon.OnnxTensor = RLAddon.OnnxTensor.zeros(
		given[0].dims, RLAddon.OnnxTensor.Type.BOOL
	)
	all.ints.fill(1)
	return [given[0], all]
