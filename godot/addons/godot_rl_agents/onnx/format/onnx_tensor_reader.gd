@tool
extends RefCounted
## Reads the tensors of a file: in any of the forms the format has, or from files beside it.

const EXTERNAL: int = 1
## Types whose raw form Godot reads at once.
const AS_THEY_ARE: Array[int] = [RLRuntime.OnnxTensor.Type.FLOAT, RLRuntime.OnnxTensor.Type.INT64]
## Bytes of an element in raw form.
const WIDTHS: Dictionary[int, int] = {
	RLRuntime.OnnxTensor.Type.FLOAT: 4,
	RLRuntime.OnnxTensor.Type.DOUBLE: 8,
	RLRuntime.OnnxTensor.Type.UINT8: 1,
	RLRuntime.OnnxTensor.Type.INT8: 1,
	RLRuntime.OnnxTensor.Type.BOOL: 1,
	RLRuntime.OnnxTensor.Type.UINT16: 2,
	RLRuntime.OnnxTensor.Type.INT16: 2,
	RLRuntime.OnnxTensor.Type.INT32: 4,
	RLRuntime.OnnxTensor.Type.UINT32: 4,
	RLRuntime.OnnxTensor.Type.INT64: 8,
}

var error: String = ""
## The name of the tensor that was read.
var name: String = ""

var _source: RLRuntime.OnnxSource
var _budget: RLRuntime.OnnxBudget
var _floats: PackedFloat32Array = []
var _ints: PackedInt64Array = []
var _raw: PackedByteArray = []
var _has_raw: bool = false
var _location: Dictionary[String, String] = {}


func _init(source: RLRuntime.OnnxSource, budget: RLRuntime.OnnxBudget) -> void:
	_source = source
	_budget = budget


func read(wire: RLRuntime.OnnxWire) -> RLRuntime.OnnxTensor:
	var tensor: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.new()
	var is_external: bool = false
	name = ""
	tensor.type = RLRuntime.OnnxTensor.Type.UNDEFINED
	_floats = []
	_ints = []
	_has_raw = false
	_location = {}
	while not error and wire.next():
		match wire.field:
			1:
				wire.add_wholes(tensor.dims)
			2:
				tensor.type = wire.whole()
			4:
				wire.add_floats(_floats)
			5, 7:
				wire.add_wholes(_ints)
			8:
				name = wire.text()
			9:
				_raw = wire.raw()
				_has_raw = true
			10:
				_add_doubles(wire)
			13:
				_read_location(wire.message())
			14:
				is_external = wire.whole() == EXTERNAL
	_fail(wire.error)
	if not error and not RLRuntime.OnnxTensor.is_known(tensor.type):
		_fail("%s tensors cannot be run" % RLRuntime.OnnxTensor.type_name(tensor.type))
	elif not error and not RLRuntime.OnnxShape.is_allowed(tensor.dims):
		_fail("the shape %s" % RLRuntime.OnnxShape.text(tensor.dims))
	if not error and is_external:
		_read_external()
	if not error:
		_fill(tensor)
	if error and not error.begins_with("tensor"):
		error = "tensor '%s': %s" % [name, error]
	_raw = PackedByteArray()
	return tensor


func _fill(tensor: RLRuntime.OnnxTensor) -> void:
	var size: int = RLRuntime.OnnxShape.count(tensor.dims)
	if _has_raw:
		var width: int = WIDTHS[tensor.type]
		if _raw.size() != size * width:
			_fail("%d bytes for %s" % [_raw.size(), tensor.describe()])
		elif not _budget.spend(0 if tensor.type in AS_THEY_ARE else size):
			_fail("it takes too long to read")
		else:
			_decode(tensor)
	elif tensor.is_float():
		tensor.floats = _floats
	else:
		for index: int in _ints.size():
			_ints[index] = RLRuntime.OnnxTensor.wrapped(_ints[index], tensor.type)
		tensor.ints = _ints
	if not error and tensor.count() != size:
		_fail("%d numbers for %s" % [tensor.count(), tensor.describe()])


func _decode(tensor: RLRuntime.OnnxTensor) -> void:
	match tensor.type:
		RLRuntime.OnnxTensor.Type.FLOAT:
			tensor.floats = _raw.to_float32_array()
		RLRuntime.OnnxTensor.Type.DOUBLE:
			tensor.floats.resize(_raw.size() >> 3)
			for index: int in tensor.floats.size():
				tensor.floats[index] = _raw.decode_double(8 * index)
		RLRuntime.OnnxTensor.Type.INT64:
			tensor.ints = _raw.to_int64_array()
		_:
			_decode_narrow(tensor)


func _decode_narrow(tensor: RLRuntime.OnnxTensor) -> void:
	var width: int = WIDTHS[tensor.type]
	var kind: int = tensor.type
	var values: PackedInt64Array = []
	values.resize(_raw.size() / width)
	for index: int in values.size():
		match width:
			1:
				values[index] = RLRuntime.OnnxTensor.wrapped(_raw[index], kind)
			2:
				values[index] = RLRuntime.OnnxTensor.wrapped(_raw.decode_u16(2 * index), kind)
			_:
				values[index] = RLRuntime.OnnxTensor.wrapped(_raw.decode_u32(4 * index), kind)
	tensor.ints = values


func _add_doubles(wire: RLRuntime.OnnxWire) -> void:
	if wire.kind == RLRuntime.OnnxWire.Kind.FIXED_64:
		_floats.append(wire.bytes.decode_double(wire.start))
	elif wire.kind != RLRuntime.OnnxWire.Kind.BYTES or (wire.stop - wire.start) % 8 != 0:
		_fail("field %d is not a list of floats" % wire.field)
	elif not _budget.spend((wire.stop - wire.start) >> 3):
		_fail("it takes too long to read")
	else:
		for number: float in wire.raw().to_float64_array():
			_floats.append(number)


func _read_location(wire: RLRuntime.OnnxWire) -> void:
	var entry: PackedStringArray = ["", ""]
	while wire.next():
		if wire.field == 1 or wire.field == 2:
			entry[wire.field - 1] = wire.text()
	_fail(wire.error)
	_location[entry[0]] = entry[1]


func _read_external() -> void:
	var whole: PackedByteArray = _source.part(_location.get("location", ""))
	_fail(_source.error)
	var from: int = _location.get("offset", "0").to_int()
	var length: int = _location.get("length", str(whole.size() - from)).to_int()
	if from < 0 or length < 0 or from > whole.size() or length > whole.size() - from:
		_fail("%d bytes from byte %d on are not in its file" % [length, from])
		return
	_raw = whole.slice(from, from + length)
	_has_raw = true


func _fail(what: String) -> void:
	if what and not error:
		error = what
