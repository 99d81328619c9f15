@tool
extends RefCounted
## What a `.onnx` file says: its graph, as it stands there. Whether it can run is OnnxPlan's matter.

const OLDEST_OPSET: int = 9
const NEWEST_OPSET: int = 21
## A file of this many seconds of reading is given up.
const LIMIT_SEC: float = 20.0

var error: String = ""
var opset: int = 0
var nodes: Array[RLRuntime.OnnxNode] = []
var constants: Dictionary[String, RLRuntime.OnnxTensor] = {}
var inputs: Array[RLRuntime.OnnxPort] = []
var outputs: Array[RLRuntime.OnnxPort] = []
## What its maker wrote beside the graph.
var metadata: Dictionary[String, String] = {}

var _budget: RLRuntime.OnnxBudget = RLRuntime.OnnxBudget.new(
	RLRuntime.OnnxBudget.READING, LIMIT_SEC
)
var _tensors: RLRuntime.OnnxTensorReader


## Read a model; false, and `error` says why, if it is none that can be read.
func read(source: RLRuntime.OnnxSource) -> bool:
	if source.error:
		error = source.error
		return false
	var bytes: PackedByteArray = source.bytes
	if bytes.is_empty():
		error = "the file is empty"
		return false
	_tensors = RLRuntime.OnnxTensorReader.new(source, _budget)
	var wire: RLRuntime.OnnxWire = RLRuntime.OnnxWire.new(bytes, 0, bytes.size(), _budget)
	var graphs: int = 0
	while not error and wire.next():
		match wire.field:
			7:
				graphs += 1
				if graphs == 1:
					_read_graph(wire.message())
			8:
				_read_opset(wire.message())
			14:
				_read_metadata(wire.message())
	_end(wire)
	if not error and graphs != 1:
		error = "it holds %d graphs instead of one: not an ONNX model" % graphs
	elif not error and opset == 0:
		error = "it does not say which opset it uses"
	return error.is_empty()


func _read_opset(wire: RLRuntime.OnnxWire) -> void:
	var domain: String = ""
	var version: int = 0
	while wire.next():
		match wire.field:
			1:
				domain = wire.text()
			2:
				version = wire.whole()
	_end(wire)
	if domain not in ["", "ai.onnx"]:
		return
	opset = version
	if version < OLDEST_OPSET or version > NEWEST_OPSET:
		_fail("opset %d; %d to %d can be run" % [version, OLDEST_OPSET, NEWEST_OPSET])


func _read_metadata(wire: RLRuntime.OnnxWire) -> void:
	var entry: PackedStringArray = _read_pair(wire)
	metadata[entry[0]] = entry[1]


func _read_pair(wire: RLRuntime.OnnxWire) -> PackedStringArray:
	var entry: PackedStringArray = ["", ""]
	while wire.next():
		if wire.field == 1 or wire.field == 2:
			entry[wire.field - 1] = wire.text()
	_end(wire)
	return entry


func _read_graph(wire: RLRuntime.OnnxWire) -> void:
	while not error and wire.next():
		match wire.field:
			1:
				nodes.append(_read_node(wire.message()))
				if nodes.size() > RLRuntime.OnnxBudget.LARGEST_GRAPH:
					_fail("more than %d nodes" % RLRuntime.OnnxBudget.LARGEST_GRAPH)
			5:
				var tensor: RLRuntime.OnnxTensor = _tensors.read(wire.message())
				_fail(_tensors.error)
				constants[_tensors.name] = tensor
			11:
				inputs.append(_read_port(wire.message()))
			12:
				outputs.append(_read_port(wire.message()))
			15:
				_fail("sparse tensors cannot be run")
	_end(wire)


func _read_node(wire: RLRuntime.OnnxWire) -> RLRuntime.OnnxNode:
	var node: RLRuntime.OnnxNode = RLRuntime.OnnxNode.new()
	while not error and wire.next():
		match wire.field:
			1:
				node.inputs.append(wire.text())
			2:
				node.outputs.append(wire.text())
			3:
				node.name = wire.text()
			4:
				node.op = wire.text()
			5:
				_read_attribute(wire.message(), node)
			7:
				node.domain = wire.text()
	_end(wire)
	return node


func _read_attribute(wire: RLRuntime.OnnxWire, node: RLRuntime.OnnxNode) -> void:
	var name: String = ""
	var type: int = 0
	var found: Dictionary[int, Variant] = {}
	var reals: PackedFloat32Array = []
	var wholes: PackedInt64Array = []
	while not error and wire.next():
		match wire.field:
			1:
				name = wire.text()
			2:
				found[1] = wire.float32()
			3:
				found[2] = wire.whole()
			4:
				found[3] = wire.text()
			5:
				found[4] = _tensors.read(wire.message())
				_fail(_tensors.error)
			7:
				wire.add_floats(reals)
			8:
				wire.add_wholes(wholes)
			9:
				var texts: PackedStringArray = found.get(8, PackedStringArray())
				texts.append(wire.text())
				found[8] = texts
			20:
				type = wire.whole()
	_end(wire)
	found[6] = reals
	found[7] = wholes
	# Old files leave the type out where a value says it.
	if type == 0:
		type = 6 if reals else 7 if wholes else int(found.keys()[0])
	if not found.has(type):
		# proto3 leaves out what is zero
		found[1] = 0.0
		found[2] = 0
		found[3] = ""
		found[8] = PackedStringArray()
	node.attributes[name] = found.get(type)


func _read_port(wire: RLRuntime.OnnxWire) -> RLRuntime.OnnxPort:
	var port: RLRuntime.OnnxPort = RLRuntime.OnnxPort.new()
	while wire.next():
		match wire.field:
			1:
				port.name = wire.text()
			2:
				_read_type(wire.message(), port)
	_end(wire)
	return port


func _read_type(wire: RLRuntime.OnnxWire, port: RLRuntime.OnnxPort) -> void:
	while wire.next():
		if wire.field == 1:
			_read_tensor_type(wire.message(), port)
	_end(wire)


func _read_tensor_type(wire: RLRuntime.OnnxWire, port: RLRuntime.OnnxPort) -> void:
	while wire.next():
		match wire.field:
			1:
				port.type = wire.whole()
			2:
				port.has_shape = true
				_read_shape(wire.message(), port)
	_end(wire)


func _read_shape(wire: RLRuntime.OnnxWire, port: RLRuntime.OnnxPort) -> void:
	while wire.next():
		if wire.field != 1:
			continue
		var size: int = -1
		var free: String = ""
		var inner: RLRuntime.OnnxWire = wire.message()
		while inner.next():
			match inner.field:
				1:
					size = inner.whole()
				2:
					free = inner.text()
		_end(inner)
		port.dims.append(maxi(size, -1))
		port.free.append(free)
	_end(wire)
	var least: PackedInt64Array = port.filled(1)
	if not RLRuntime.OnnxShape.is_allowed(least):
		_fail("'%s' has the shape %s" % [port.name, RLRuntime.OnnxShape.text(port.dims)])


func _end(wire: RLRuntime.OnnxWire) -> void:
	_fail(wire.error)


func _fail(what: String) -> void:
	if what and not error:
		error = what
