@tool
class_name TagSeries
extends RefCounted
## Sine and cosine from + - * / alone, so that both engines compute the same bits.

const TERMS: int = 13
## To 15 digits: every decimal reader turns these into the same double.
const PI_15: float = 3.14159265358979


## Degrees to radians.
static func radians(degrees: float) -> float:
	return degrees * PI_15 / 180.0


## Taylor series of sin x in Horner's form, for x up to 180 degrees.
static func sine(x: float) -> float:
	var square: float = x * x
	var value: float = 1.0
	for term: int in range(TERMS, 0, -1):
		value = 1.0 - square / ((2.0 * term) * (2.0 * term + 1.0)) * value
	return x * value


## Taylor series of cos x in Horner's form, for x up to 180 degrees.
static func cosine(x: float) -> float:
	var square: float = x * x
	var value: float = 1.0
	for term: int in range(TERMS, 0, -1):
		value = 1.0 - square / ((2.0 * term - 1.0) * (2.0 * term)) * value
	return value
