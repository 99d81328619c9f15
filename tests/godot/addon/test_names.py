"""No global class of a game takes the place of anything in the addon."""

import re
from pathlib import Path

import pytest

from estragon.godot.process import GodotProcess
from tests.godot.addon import models
from tests.godot.addon.cast import KICK, SEES, Stage, actor
from tests.godot.addon.peer import ADDON, copy_game, playing
from tests.godot.staging import kept_project

DOCUMENTED = {
    *("Sync", "AIController2D", "AIController3D", "ISensor2D", "ISensor3D", "RaycastSensor2D"),
    *("RayCastSensor3D", "GridSensor2D", "GridSensor3D", "PositionSensor2D", "PositionSensor3D"),
    *("RGBCameraSensor2D", "RGBCameraSensor3D", "RewardFunction2D", "RewardFunction3D"),
    *("ApproachNodeReward2D", "ApproachNodeReward3D", "ONNXModel", "GodotRLModel", "RLAddon"),
    *("RLParameter", "RLParameters", "RLParameterSet", "RLRuntime"),
}
NOUNS = re.findall(
    r"\w+",
    """
    Action Actions Agents Arena Ball Batch Bot Brain Camera Car Character Client Command
    Config Connection Control2 Controller Data Decision Demo Done Encoder Enemy Engine2
    Env Environment2 Event Events Files Game GameManager Global Goal Grid Helper Host Info
    Json Kind Layer Level Line Logger Main Manager Map Math Memory Message Messages Model
    Modes Network Observation Obs Observer Options Order Packet Peer Point Port Process
    Rays Reader Recorder Result Reward Rewards Role Rng Row Rules Scene Score Seed Sensor
    Sensors Server Session Settings Setup Shape State States Stats Step Stream Target Task
    Team Tensor Tile Time2 Timer2 Trajectory Training Unit Utils Value Vehicle View Wall
    Wire World Writer
    """,
)
CHECK = """\
extends SceneTree


func _init() -> void:
	var names: PackedStringArray = []
	var folders: Array[String] = ["res://addons/godot_rl_agents"]
	while folders:
		var folder: String = folders.pop_back()
		for sub: String in DirAccess.get_directories_at(folder):
			if sub != "script_templates":
				folders.append(folder.path_join(sub))
		for file: String in DirAccess.get_files_at(folder):
			if file.ends_with(".gd"):
				names.append(folder.path_join(file))
	for name: String in names:
		var script: Script = load(name)
		if not script or not (script.can_instantiate() or "plugin" in name):
			print("BROKEN ", name)
	print("LOADED ", names.size())
	quit()
"""
NATIVE = """\
extends SceneTree


func _init() -> void:
	for name: String in ClassDB.get_class_list():
		print("NATIVE ", name)
	quit()
"""


def everyday_names(native: set[str]) -> list[str]:
    """Every name that the addon gives a constant, an enum, a class or a variable, and many more."""
    found = set(NOUNS)
    for script in ADDON.rglob("*.gd"):
        text = script.read_text()
        found |= set(re.findall(r"^(?:const|class|enum) (\w+)", text, re.MULTILINE))
        found |= {word.capitalize() for word in re.findall(r"\bvar (_?[a-z]+)\b", text)}
        found |= set(re.findall(r"^class_name (\w+)", text, re.MULTILINE))
        found.add("".join(part.capitalize() for part in script.stem.split("_")))
    # What Godot has, what a game may not have twice, and what the cast game calls its own.
    builtin = {"Color", "Callable", "Signal", "Variant", "Array", "Dictionary"}
    unusable = native | DOCUMENTED | builtin | {"Part"}
    found = {name.lstrip("_") for name in found}
    return sorted(name for name in found if name not in unusable)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory, godot: Path) -> Path:
    """The cast game, in a project with a global class for every everyday name."""
    folder = tmp_path_factory.mktemp("crowded") / "game"
    copy_game("cast", folder)
    (folder / "native.gd").write_text(NATIVE)
    (folder / "check.gd").write_text(CHECK)
    words = ["--headless", "--path", str(folder), "--script", "res://native.gd"]
    with GodotProcess(words, folder=folder.parent / "native") as process:
        assert process.wait("the list of classes", 30.0) == 0
        lines = process.lines()
    native = {line.split()[1] for line in lines if line.startswith("NATIVE ")}
    assert "Node3D" in native
    names = everyday_names(native)
    assert {"Player", "Agent", "Policy", "Episode", "Spaces", "Mode", "Type", "OnnxTensor"} <= {
        *names
    }
    classes = folder / "classes"
    classes.mkdir()
    for number, name in enumerate(names):
        (classes / f"class{number}.gd").write_text(f"class_name {name}\nextends Node\n")
    project = folder / "project.godot"
    plugin = "res://addons/godot_rl_agents/plugin.cfg"
    project.write_text(
        f'{project.read_text()}\n[editor_plugins]\n\nenabled=PackedStringArray("{plugin}")\n'
    )
    return kept_project("crowded", folder)


def test_everything_parses(crowded: Path, tmp_path: Path) -> None:
    words = ["--headless", "--path", str(crowded), "--script", "res://check.gd"]
    with GodotProcess(words, folder=tmp_path) as process:
        assert process.wait("the check", 60.0) == 0
        lines = process.lines()
    assert [line for line in lines if line.startswith(("BROKEN", "SCRIPT ERROR"))] == []
    count = len(list(ADDON.rglob("*.gd"))) - len(list((ADDON / "script_templates").rglob("*.gd")))
    assert f"LOADED {count}" in lines


def test_a_model_and_a_trainer_play(crowded: Path, tmp_path: Path) -> None:
    stage = Stage(crowded, tmp_path)
    model = models.constant(stage / "model.onnx", 0, 1, 0)
    found = stage.play(actor("Ann", SEES, KICK), onnx_model_path=model, ticks=9)
    assert found.errors == []
    assert found.of("Ann", "kick") == [1, 1, 1]
    play = stage.file([actor("Bob", SEES, KICK)], 1000, {}, {"control_mode": 1})
    for encodings in ((), ("binary1",)):
        with playing(crowded, tmp_path / f"training{len(encodings)}", play) as peer:
            assert peer.greet(*encodings)["n_agents"] == 1
            if encodings:
                assert peer.reset()[0].obs == {"obs": [0.0, 0.0]}
                assert peer.step(2)[0].obs == {"obs": [0.0, 4.0]}
            else:
                assert peer.old_reset()["obs"] == [{"obs": [0, 0]}]
                assert peer.old_step([{"kick": 2}])["obs"] == [{"obs": [0, 4]}]
            assert not [line for line in peer.process.lines() if "ERROR" in line]


def test_only_documented_classes_are_global() -> None:
    pattern = re.compile(r"^class_name (\w+)", re.MULTILINE)
    found = {
        name
        for script in ADDON.rglob("*.gd")
        if "script_templates" not in script.parts
        for name in pattern.findall(script.read_text())
    }
    assert found == DOCUMENTED


def test_the_addon_does_without_the_names_of_parameters(tmp_path: Path, godot: Path) -> None:
    """Of two classes of a name Godot loads one: whichever it is, the agents play."""
    project = copy_game("counter", tmp_path / "game")
    places = {"RLParameters": "aaa", "RLParameter": ".", "RLParameterSet": "zzz"}
    for name, place in places.items():
        (project / place).mkdir(exist_ok=True)
        script = project / place / f"{name.lower()}.gd"
        script.write_text(f"class_name {name}\nextends Node\n")
    for encodings in ((), ("binary1",)):
        log = tmp_path / f"log{len(encodings)}"
        with playing(kept_project("own names", project), log) as peer:
            assert peer.greet(*encodings)["n_agents"] == 1
            if encodings:
                peer.reset()
                assert peer.step(0.0, 0.0, 1.0)[0].reward == 4.0
            else:
                peer.old_reset()
                assert peer.old_step([{"push": [0, 0], "choice": 1}])["reward"] == [4]
