extends RefCounted
## Finds numbers that are no numbers, without looking at each.

## How bytes_to_var knows that a PackedVector2Array follows.
const VECTORS: int = TYPE_PACKED_VECTOR2_ARRAY


## Whether there is neither NaN nor infinity.
static func are_all(numbers: PackedFloat32Array) -> bool:
	if numbers.is_empty():
		return true
	return not (numbers.has(INF) or numbers.has(-INF) or _has_nan(numbers))


## The same value with 0 for everything that is no number; however deep it lies.
static func cleaned(value: Variant) -> Variant:
	if typeof(value) == TYPE_FLOAT:
		return value if is_finite(value) else 0.0
	if value is Array:
		return value.map(cleaned)
	if value is Dictionary:
		var copy: Dictionary = {}
		for key: Variant in value:
			copy[key] = cleaned(value[key])
		return copy
	if value is PackedFloat32Array or value is PackedFloat64Array:
		return Array(value).map(cleaned)
	return value


## NaN is the one number that does not equal itself: among vectors, not among packed numbers.
static func _has_nan(numbers: PackedFloat32Array) -> bool:
	var head: PackedInt32Array = [VECTORS, ceili(numbers.size() / 2.0)]
	var bytes: PackedByteArray = head.to_byte_array()
	bytes.append_array(numbers.to_byte_array())
	if numbers.size() % 2:
		bytes.append_array([0, 0, 0, 0])
	var vectors: PackedVector2Array = bytes_to_var(bytes)
	var again: PackedVector2Array = bytes_to_var(bytes)
	return vectors != again
