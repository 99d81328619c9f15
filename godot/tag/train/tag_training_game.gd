class_name TagTrainingGame
extends TagGame
## The game for a trainer, whose arguments include the game's own, such as `--arenas=16`.

@export var sync: Sync


func _ready() -> void:
	options = TagOptions.of(_words(), {})
	super()
	sync.action_repeat = rules.decision_ticks


func _choose_driver() -> String:
	driver = TagTraining.new()
	return ""


## The arguments that are options of the game.
func _words() -> PackedStringArray:
	var words: PackedStringArray = []
	for word: String in OS.get_cmdline_args() + OS.get_cmdline_user_args():
		if word.trim_prefix("--").get_slice("=", 0) in TagOptions.DEFAULTS and "=" in word:
			words.append(word)
	return words
