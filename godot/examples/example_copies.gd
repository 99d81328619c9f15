class_name ExampleCopies
## Many arenas in one scene, since a trainer learns faster from many players at once.


## How many were asked for by `--copies=N` on the command line, or else `otherwise`.
static func count(otherwise: int) -> int:
	for word: String in OS.get_cmdline_args() + OS.get_cmdline_user_args():
		if word.begins_with("--copies="):
			return maxi(word.trim_prefix("--copies=").to_int(), 1)
	return otherwise


## Columns of the square that holds so many.
static func columns(copies: int) -> int:
	return ceili(sqrt(copies))


## The place of one in that square, in cells from its middle.
@warning_ignore("integer_division")
static func place(index: int, copies: int) -> Vector2:
	var across: int = columns(copies)
	var rows: int = ceili(float(copies) / across)
	return Vector2(index % across, index / across) - 0.5 * Vector2(across - 1, rows - 1)
