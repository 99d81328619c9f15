@tool
extends RefCounted
## Reads the fields of one protobuf message, never past its end.
##
## `while wire.next():` gives each field in turn; afterwards `error` says whether all was well.

enum Kind { VARINT, FIXED_64, BYTES, GROUP, GROUP_END, FIXED_32 }

const LONGEST_VARINT: int = 10

var error: String = ""
## The number of the field that was read.
var field: int = 0
var kind: int = Kind.VARINT
## Of a varint field: its value. Of the fixed kinds: nothing, see `start`.
var value: int = 0
## Where the field's bytes begin, and where they end.
var start: int = 0
var stop: int = 0
var bytes: PackedByteArray

var _at: int
var _end: int
var _budget: RLRuntime.OnnxBudget


func _init(source: PackedByteArray, from: int, to: int, budget: RLRuntime.OnnxBudget) -> void:
	bytes = source
	_at = from
	_end = to
	_budget = budget


## Read one more field; false at the end, or when there is an `error`.
func next() -> bool:
	if error or _at >= _end:
		return false
	if not _budget.spend(1):
		return _fail("it takes too long to read")
	var key: int = _varint()
	field = key >> 3
	kind = key & 7
	start = _at
	match kind:
		Kind.VARINT:
			value = _varint()
		Kind.FIXED_64:
			_at += 8
		Kind.FIXED_32:
			_at += 4
		Kind.BYTES:
			var length: int = _varint()
			start = _at
			if length < 0 or length > _end - _at:
				return _fail("a field of %d bytes does not fit" % length)
			_at += length
		_:
			return _fail("a field of kind %d" % kind)
	stop = _at
	if field < 1 or _at > _end:
		return _fail("a field is cut off")
	return not error


## The message inside the field.
func message() -> RLRuntime.OnnxWire:
	if kind != Kind.BYTES:
		_fail("field %d is not a message" % field)
		return RLRuntime.OnnxWire.new(bytes, 0, 0, _budget)
	return RLRuntime.OnnxWire.new(bytes, start, stop, _budget)


## The text inside the field.
func text() -> String:
	if kind != Kind.BYTES:
		_fail("field %d is not text" % field)
		return ""
	return bytes.slice(start, stop).get_string_from_utf8()


func raw() -> PackedByteArray:
	if kind != Kind.BYTES:
		_fail("field %d is not bytes" % field)
		return PackedByteArray()
	return bytes.slice(start, stop)


## The whole number of the field.
func whole() -> int:
	if kind != Kind.VARINT:
		_fail("field %d is not a whole number" % field)
		return 0
	return value


## The float of the field.
func float32() -> float:
	if kind != Kind.FIXED_32:
		_fail("field %d is not a float" % field)
		return 0.0
	return bytes.decode_float(start)


## Add the field's whole numbers, one or many packed together, to a list.
func add_wholes(list: PackedInt64Array) -> void:
	if kind == Kind.VARINT:
		list.append(value)
		return
	if kind != Kind.BYTES:
		_fail("field %d is not a list of whole numbers" % field)
		return
	if not _budget.spend(stop - start):
		_fail("it takes too long to read")
		return
	var resume: int = _at
	var end: int = _end
	_at = start
	_end = stop
	while _at < _end and not error:
		list.append(_varint())
	_at = resume
	_end = end


## Add the field's floats, one or many packed together, to a list.
func add_floats(list: PackedFloat32Array) -> void:
	if kind == Kind.FIXED_32:
		list.append(bytes.decode_float(start))
	elif kind != Kind.BYTES or (stop - start) % 4 != 0:
		_fail("field %d is not a list of floats" % field)
	else:
		list.append_array(bytes.slice(start, stop).to_float32_array())


func _varint() -> int:
	var number: int = 0
	for index: int in LONGEST_VARINT:
		if _at >= _end:
			_fail("a number is cut off")
			return 0
		var byte: int = bytes[_at]
		_at += 1
		number |= (byte & 0x7F) << (7 * index)
		if byte < 0x80:
			return number
	_fail("a number of more than %d bytes" % LONGEST_VARINT)
	return 0


func _fail(what: String) -> bool:
	if not error:
		error = "%s, at byte %d" % [what, _at]
	return false
