@tool
extends RefCounted
## Project → Tools → Train with Estragon…: opens the controller, a web page, for this project.

const TITLE: String = "Train with Estragon…"
const MISSING: String = (
	"Estragon was not found.\n\nInstall it with Python 3.11 to 3.13:\n"
	+ "    pip install 'estragon[ui,sb3,onnx]'\n\n"
	+ "Then start Godot from the same environment, or set ESTRAGON_BIN to the program."
)


## Start the controller, or say how to install it.
static func open() -> void:
	var process: int = start(ProjectSettings.globalize_path("res://"))
	if process > 0:
		print("[Godot RL Agents] The controller opens in the browser, as process %d" % process)
		return
	var dialog: AcceptDialog = AcceptDialog.new()
	dialog.title = TITLE
	dialog.dialog_text = MISSING
	dialog.visibility_changed.connect(
		func() -> void:
			if not dialog.visible:
				dialog.queue_free()
	)
	EditorInterface.popup_dialog_centered(dialog)


## Start the controller for a project's folder; returns its process id, or -1 without Estragon.
static func start(project: String) -> int:
	var program: String = find_program(project)
	return -1 if program.is_empty() else OS.create_process(program, ["ui", project])


## ESTRAGON_BIN, a .venv in or above the project, or the PATH; empty if there is none.
static func find_program(project: String) -> String:
	var windows: bool = OS.get_name() == "Windows"
	var file: String = "estragon.exe" if windows else "estragon"
	var folder: String = project.simplify_path()
	var candidates: Array[String] = [OS.get_environment("ESTRAGON_BIN")]
	for above: String in [folder, folder.get_base_dir()]:
		candidates.append(
			above.path_join(".venv/Scripts" if windows else ".venv/bin").path_join(file)
		)
	for each: String in OS.get_environment("PATH").split(";" if windows else ":", false):
		candidates.append(each.path_join(file))
	for candidate: String in candidates:
		if not candidate.is_empty() and FileAccess.file_exists(candidate):
			return candidate
	return ""
