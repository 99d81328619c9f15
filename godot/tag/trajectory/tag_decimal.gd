class_name TagDecimal
extends RefCounted
## Parses decimal text as the nearest double; Godot's own parser is off in the last bits.

## An integer of this many digits fits into 63 bits.
const MOST_DIGITS: int = 18
## The largest power of ten that a double represents exactly.
const EXACT_POWER: int = 22
## Splits a double into two halves whose products are exact.
const SPLITTER: float = 134217729.0


## The double nearest to a number such as `-0.12345` or `1e-07`.
static func read(text: String) -> float:
	var parts: PackedStringArray = text.strip_edges().to_lower().split("e")
	var digits: String = parts[0].lstrip("+-")
	var exponent: int = parts[1].to_int() if parts.size() == 2 else 0
	var point: int = digits.find(".")
	if point >= 0:
		exponent -= digits.length() - point - 1
		digits = digits.erase(point)
	digits = digits.lstrip("0")
	if digits.length() > MOST_DIGITS:
		return text.to_float()
	var size: float = _scaled(digits.to_int(), exponent)
	return -size if parts[0].begins_with("-") else size


## `whole` times ten to the `exponent`, with a second double for what the first cannot hold.
static func _scaled(whole: int, exponent: int) -> float:
	var high: float = float(whole)
	var low: float = float(whole - int(high))
	while exponent < 0:
		var places: int = mini(-exponent, EXACT_POWER)
		var power: float = _power(places)
		var quotient: float = high / power
		var rest: float = (_remainder(high, quotient, power) + low) / power
		high = quotient + rest
		low = rest - (high - quotient)
		exponent += places
	return high * _power(exponent)


static func _power(exponent: int) -> float:
	var power: float = 1.0
	for _place: int in exponent:
		power *= 10.0
	return power


## high - quotient * power, exactly.
static func _remainder(high: float, quotient: float, power: float) -> float:
	var product: float = quotient * power
	var big_q: float = quotient * SPLITTER
	big_q = big_q - (big_q - quotient)
	var big_p: float = power * SPLITTER
	big_p = big_p - (big_p - power)
	var small_q: float = quotient - big_q
	var small_p: float = power - big_p
	var error: float = big_q * big_p - product
	error += big_q * small_p
	error += small_q * big_p
	error += small_q * small_p
	return (high - product) - error
