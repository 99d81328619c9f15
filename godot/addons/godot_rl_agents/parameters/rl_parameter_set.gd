@tool
class_name RLParameterSet
extends Resource
## Declares the game's parameters. Assign it to `parameters` of Sync: `estragon godot probe` lists
## them, and trainers stay within their ranges. The game reads them with RLParameters.

@export var parameters: Array[RLParameter] = []


## What is wrong with it, line by line.
func problems() -> PackedStringArray:
	var found: PackedStringArray = []
	var names: Dictionary[String, bool] = {}
	for each: RLParameter in parameters:
		var problem: String = each.problem() if each else "an entry is empty"
		if problem:
			found.append(problem)
		elif each.name in names:
			found.append("%s is declared twice" % each.name)
		else:
			names[each.name] = true
	if parameters.size() > RLAddon.ParameterStore.MOST:
		found.append("there are more than %d" % RLAddon.ParameterStore.MOST)
	return found


## Those without a problem, as the trainer is told of them.
func describe() -> Array[Dictionary]:
	var found: Array[Dictionary] = []
	for each: RLParameter in parameters:
		if each and not each.problem():
			found.append(each.describe())
	return found
