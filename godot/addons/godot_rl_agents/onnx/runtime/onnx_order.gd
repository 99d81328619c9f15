extends RefCounted
## The nodes that the outputs need, each after those it reads from.


## Sorted nodes; tells the plan by `fail` of inputs that nothing makes, and of cycles.
static func of(file: RLRuntime.OnnxFile, plan: RLRuntime.OnnxPlan) -> Array[RLRuntime.OnnxNode]:
	var maker: Dictionary[String, int] = {}
	for port: RLRuntime.OnnxPort in file.inputs:
		maker[port.name] = -1
	for name: String in file.constants:
		maker[name] = -1
	for index: int in file.nodes.size():
		for name: String in file.nodes[index].outputs:
			if name and maker.has(name):
				plan.fail("%s makes '%s' again" % [file.nodes[index].describe(), name])
				return []
			if name:
				maker[name] = index
	var needed: Array[int] = _needed(file, maker, plan)
	if plan.error:
		return []
	return _sorted(file, maker, needed, plan)


## The nodes from which some output can be reached, in the file's order.
static func _needed(
	file: RLRuntime.OnnxFile, maker: Dictionary[String, int], plan: RLRuntime.OnnxPlan
) -> Array[int]:
	var is_needed: Dictionary[int, bool] = {}
	var open: Array[int] = []
	for port: RLRuntime.OnnxPort in file.outputs:
		if not maker.has(port.name):
			plan.fail("nothing makes its output '%s'" % port.name)
			return []
		open.append(maker[port.name])
	while open:
		var index: int = open.pop_back()
		if index < 0 or is_needed.has(index):
			continue
		is_needed[index] = true
		var node: RLRuntime.OnnxNode = file.nodes[index]
		for name: String in node.inputs:
			if name and not maker.has(name):
				plan.fail("%s reads '%s', which nothing makes" % [node.describe(), name])
				return []
			if name:
				open.append(maker[name])
	var found: Array[int] = is_needed.keys()
	found.sort()
	return found


static func _sorted(
	file: RLRuntime.OnnxFile,
	maker: Dictionary[String, int],
	needed: Array[int],
	plan: RLRuntime.OnnxPlan
) -> Array[RLRuntime.OnnxNode]:
	var waits_for: Dictionary[int, int] = {}
	var readers: Dictionary[int, Array] = {}
	for index: int in needed:
		waits_for[index] = 0
		for name: String in file.nodes[index].inputs:
			if name and maker[name] >= 0:
				waits_for[index] += 1
				readers.get_or_add(maker[name], []).append(index)
	var ready: Array[int] = []
	for index: int in needed:
		if waits_for[index] == 0:
			ready.append(index)
	var order: Array[RLRuntime.OnnxNode] = []
	var at: int = 0
	while at < ready.size():
		var index: int = ready[at]
		at += 1
		order.append(file.nodes[index])
		waits_for.erase(index)
		for reader: int in readers.get(index, []):
			waits_for[reader] -= 1
			if waits_for[reader] == 0:
				ready.append(reader)
	if waits_for:
		var stuck: int = waits_for.keys()[0]
		plan.fail("%s reads what is made from it: a cycle" % file.nodes[stuck].describe())
	return order
