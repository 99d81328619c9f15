extends SceneTree
## Run by `estragon judge hunt` from outside a project: plays the game with a probe inside.
##
## `--hunt-port=` is where the probe reports to, `--hunt-watch=` lists properties to report;
## `--hunt-input=1` plays a game without a Sync node by its InputMap and buttons.

const HuntProbe = preload("hunt_probe.gd")
const HuntPlayer = preload("hunt_player.gd")


func _initialize() -> void:
	var typed: Dictionary[String, String] = {}
	for word: String in OS.get_cmdline_args() + OS.get_cmdline_user_args():
		if word.begins_with("--") and "=" in word:
			typed[word.get_slice("=", 0).trim_prefix("--")] = word.substr(word.find("=") + 1)
	if "env_seed" in typed:
		seed(typed["env_seed"].to_int())
	if "hunt-port" in typed:
		var watched: PackedStringArray = typed.get("hunt-watch", "").split("|", false)
		root.add_child(HuntProbe.new(typed["hunt-port"].to_int(), watched))
	var scene: String = current_scene.scene_file_path if current_scene else ""
	if not scene:
		scene = ProjectSettings.get_setting("application/run/main_scene", "")
		change_scene_to_file(scene)
	if typed.get("hunt-input") == "1":
		var repeat: int = maxi(1, typed.get("action_repeat", "8").to_int())
		root.add_child(HuntPlayer.new(typed.get("port", "11008").to_int(), repeat, scene))
