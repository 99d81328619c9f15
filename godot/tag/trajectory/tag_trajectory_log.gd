class_name TagTrajectoryLog
extends RefCounted
## Logs the matches of a stage: one file per match, written at its end.
##
## An interrupted match leaves no file.

var _folder: String
var _players: Dictionary[String, String]
## The log of the match in each arena, by its index.
var _open: Dictionary[int, TagTrajectory] = {}


func _init(folder: String, players: Dictionary[String, String]) -> void:
	_folder = folder
	_players = players


## Create the folder; returns the problem, or "".
func prepare() -> String:
	var problem: Error = DirAccess.make_dir_recursive_absolute(_folder)
	var folder: DirAccess = DirAccess.open(_folder)
	if problem != OK or not folder:
		return "cannot write into %s: %s" % [_folder, error_string(problem)]
	return ""


func begin(arena: int, game: TagMatch) -> void:
	_open[arena] = TagTrajectory.new(game, _players)


## Log the result of a decision.
func record(arena: int) -> void:
	var trajectory: TagTrajectory = _open.get(arena)
	if not trajectory:
		return
	trajectory.record_decision()
	if trajectory.is_over():
		_open.erase(arena)
		_save(trajectory)


func _save(trajectory: TagTrajectory) -> void:
	var path: String = _free_path(trajectory.game)
	var temporary: String = path.get_base_dir().path_join("." + path.get_file())
	var file: FileAccess = FileAccess.open(temporary, FileAccess.WRITE)
	var failed: Error = FileAccess.get_open_error()
	if file:
		file.store_string("\n".join(trajectory.lines) + "\n")
		failed = file.get_error()
		file.close()
	if failed == OK:
		failed = DirAccess.rename_absolute(temporary, path)
	if failed != OK:
		DirAccess.remove_absolute(temporary)
		printerr("estragon: cannot write %s: %s" % [path, error_string(failed)])


## A path that does not exist yet, with a number if the first one does.
func _free_path(game: TagMatch) -> String:
	var now: Dictionary = Time.get_datetime_dict_from_system()
	var day: String = "%04d%02d%02d" % [now.year, now.month, now.day]
	var time: String = "%02d%02d%02d" % [now.hour, now.minute, now.second]
	var name: String = "ep_%s-%s_%04d_%05d" % [day, time, game.number, game.episode]
	var path: String = _folder.path_join(name + ".jsonl")
	var number: int = 1
	while FileAccess.file_exists(path):
		number += 1
		path = _folder.path_join("%s-%d.jsonl" % [name, number])
	return path
