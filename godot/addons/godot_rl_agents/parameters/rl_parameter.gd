@tool
class_name RLParameter
extends Resource
## A parameter of the game, which a trainer may set: see RLParameterSet.

## What RLParameters.number or RLParameters.text calls it.
@export var name: String = ""
## Its value without a trainer; of words, the first choice.
@export var default: float = 0.0
## The trainer stays within low and high; if they are equal, there is no range.
@export var low: float = 0.0
@export var high: float = 0.0
## Such as m/s; only shown.
@export var unit: String = ""
## The words to choose from, if it is not a number.
@export var choices: PackedStringArray = []


## What is wrong with it, or "".
func problem() -> String:
	if not name or name.length() > RLAddon.ParameterStore.LONGEST_NAME:
		return "a name needs 1 to %d characters" % RLAddon.ParameterStore.LONGEST_NAME
	var longest: int = RLAddon.ParameterStore.LONGEST_TEXT
	for word: String in choices:
		if word.length() > longest:
			return "%s: a choice has more than %d characters" % [name, longest]
	if not choices and not (is_finite(default) and is_finite(low) and is_finite(high)):
		return "%s: its numbers must be finite" % name
	if not choices and low > high:
		return "%s: low is above high" % name
	if not choices and low < high and (default < low or default > high):
		return "%s: its default %s is not within %s to %s" % [name, default, low, high]
	return ""


## As the trainer is told of it.
func describe() -> Dictionary:
	if choices:
		return {"name": name, "default": choices[0], "unit": unit, "choices": Array(choices)}
	var told: Dictionary = {"name": name, "default": default, "unit": unit}
	return told.merged({"low": low, "high": high}) if low < high else told
