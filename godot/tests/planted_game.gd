extends TagGame
## The game with planted matches, for whoever checks that what is learned belongs together.
##
##   godot --headless --path godot --fixed-fps 60 res://tests/planted.tscn -- --live=1 --arenas=8


func _make_match(layouts: Array[TagLayout], number: int, first_seeker: int) -> TagMatch:
	return PlantedMatch.new(rules, layouts, options.number("seed"), number, first_seeker)
