@tool
extends RefCounted
## Numbers in a shape. Never changed once made, so tensors may share their numbers.
##
## Floating types are kept as float32 (float64 too), whole numbers and truth values as int64.

enum Type {
	UNDEFINED,
	FLOAT,
	UINT8,
	INT8,
	UINT16,
	INT16,
	INT32,
	INT64,
	STRING,
	BOOL,
	FLOAT16,
	DOUBLE,
	UINT32,
	UINT64,
}

const FLOATING: Array[int] = [Type.FLOAT, Type.DOUBLE]
const WHOLE: Array[int] = [
	Type.UINT8,
	Type.INT8,
	Type.UINT16,
	Type.INT16,
	Type.INT32,
	Type.INT64,
	Type.BOOL,
	Type.UINT32,
]
const BITS: Dictionary[int, int] = {
	Type.UINT8: 8,
	Type.INT8: 8,
	Type.UINT16: 16,
	Type.INT16: 16,
	Type.INT32: 32,
	Type.UINT32: 32,
}
const UNSIGNED: Array[int] = [Type.UINT8, Type.UINT16, Type.UINT32]

var type: int = Type.FLOAT
var dims: PackedInt64Array = []
## The numbers, row by row, of a floating tensor.
var floats: PackedFloat32Array = []
## Instead of `floats`, an image's pixels, line by line, as vectors of four channels each: only
## between steps that were told to make and to take them.
var lanes: PackedVector4Array = []
## The numbers, row by row, of any other.
var ints: PackedInt64Array = []


static func of_floats(
	values: PackedFloat32Array, shape: PackedInt64Array, kind: int = Type.FLOAT
) -> RLRuntime.OnnxTensor:
	var tensor: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.new()
	tensor.type = kind
	tensor.dims = shape
	tensor.floats = values
	return tensor


static func of_lanes(values: PackedVector4Array, shape: PackedInt64Array) -> RLRuntime.OnnxTensor:
	var tensor: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.new()
	tensor.dims = shape
	tensor.lanes = values
	return tensor


static func of_ints(
	values: PackedInt64Array, shape: PackedInt64Array, kind: int = Type.INT64
) -> RLRuntime.OnnxTensor:
	var tensor: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.new()
	tensor.type = kind
	tensor.dims = shape
	tensor.ints = values
	return tensor


## All zeros.
static func zeros(shape: PackedInt64Array, kind: int = Type.FLOAT) -> RLRuntime.OnnxTensor:
	var tensor: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.new()
	tensor.type = kind
	tensor.dims = shape
	if tensor.is_float():
		tensor.floats.resize(RLRuntime.OnnxShape.count(shape))
	else:
		tensor.ints.resize(RLRuntime.OnnxShape.count(shape))
	return tensor


static func is_known(kind: int) -> bool:
	return kind in FLOATING or kind in WHOLE


static func type_name(kind: int) -> String:
	var found: Variant = Type.find_key(kind)
	return str(found).to_lower() if found else "type %d" % kind


## A number as a whole-number type holds it: wrapped around, or true and false.
static func wrapped(value: int, kind: int) -> int:
	if kind == Type.BOOL:
		return 1 if value else 0
	var bits: int = BITS.get(kind, 64)
	if bits == 64:
		return value
	value &= (1 << bits) - 1
	return value if kind in UNSIGNED or value < 1 << (bits - 1) else value - (1 << bits)


func is_float() -> bool:
	return type == Type.FLOAT or type == Type.DOUBLE


func rank() -> int:
	return dims.size()


func count() -> int:
	return floats.size() if is_float() else ints.size()


## The same numbers in another shape.
func reshaped(shape: PackedInt64Array) -> RLRuntime.OnnxTensor:
	var tensor: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.new()
	tensor.type = type
	tensor.dims = shape
	tensor.floats = floats
	tensor.ints = ints
	return tensor


## The numbers at these places, in this shape; `fill` where a place is negative.
func taken(
	places: PackedInt64Array, shape: PackedInt64Array, fill: float = 0.0
) -> RLRuntime.OnnxTensor:
	var size: int = places.size()
	var tensor: RLRuntime.OnnxTensor = RLRuntime.OnnxTensor.new()
	tensor.type = type
	tensor.dims = shape
	if is_float():
		var reals: PackedFloat32Array = []
		reals.resize(size)
		for index: int in size:
			var place: int = places[index]
			reals[index] = floats[place] if place >= 0 else fill
		tensor.floats = reals
	else:
		var wholes: PackedInt64Array = []
		wholes.resize(size)
		for index: int in size:
			var place: int = places[index]
			wholes[index] = ints[place] if place >= 0 else int(fill)
		tensor.ints = wholes
	return tensor


## The numbers at these places, none of them negative.
static func take_floats(source: PackedFloat32Array, places: PackedInt64Array) -> PackedFloat32Array:
	var target: PackedFloat32Array = []
	target.resize(places.size())
	for index: int in places.size():
		target[index] = source[places[index]]
	return target


## Its numbers as floats, whatever its type.
func as_floats() -> PackedFloat32Array:
	if is_float():
		return floats
	var values: PackedFloat32Array = []
	values.resize(ints.size())
	for index: int in ints.size():
		values[index] = ints[index]
	return values


## As `float 2×3`, for messages.
func describe() -> String:
	return "%s %s" % [type_name(type), RLRuntime.OnnxShape.text(dims)]
