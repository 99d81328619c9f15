"""A scene without a Sync node is recognised from the project's text; in doubt it is played."""

import contextlib
from pathlib import Path

import pytest

from estragon.envs.connection import HandshakeServer
from estragon.envs.sync_nodes import SyncNodes, check_sync
from estragon.godot.process import GodotError, SupervisedProcess
from estragon.support.errors import UserError

ADDON = "addons/godot_rl_agents"
SYNC = "class_name Sync\nextends Node\n\nvar stream := StreamPeerTCP.new()  # env_info\n"
CONTROLLER = "class_name AIController3D\nextends Node3D\n\nvar sync: Sync = load(get_path())\n"


def scene(*parts: str, uid: str = "", extra: str = "") -> str:
    header = f"[gd_scene format=3{f' uid={uid!r}' if uid else ''}]\n\n".replace("'", '"')
    lines = [
        f'[ext_resource type="{"Script" if part.endswith(".gd") else "PackedScene"}" '
        f'uid="uid://unknown{i}" path="res://{part}" id="{i}"]\n'
        for i, part in enumerate(parts)
    ]
    return header + "".join(lines) + f'\n[node name="Root" type="Node"]\n{extra}'


def project(folder: Path, files: dict[str, str], settings: str = "") -> SyncNodes:
    defaults = {
        f"{ADDON}/sync.gd": SYNC,
        f"{ADDON}/controller/ai_controller_3d.gd": CONTROLLER,
        "player.gd": "extends Node3D\n\nvar controller: AIController3D\n",
        "main.tscn": scene("player.gd", f"{ADDON}/controller/ai_controller_3d.gd"),
        "train.tscn": scene("player.gd", f"{ADDON}/sync.gd"),
        "project.godot": f'[application]\n\nrun/main_scene="res://main.tscn"\n\n{settings}',
    }
    for name, text in (defaults | files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return SyncNodes(folder)


def test_a_scene_that_never_connects(tmp_path: Path) -> None:
    nodes = project(tmp_path, {"all.tscn": scene("train.tscn")})
    assert nodes.scenes() == ["res://all.tscn", "res://train.tscn"]
    assert nodes.uncertainty(None) is None
    assert nodes.uncertainty("res://all.tscn") == nodes.uncertainty("res://train.tscn") == ""
    with pytest.raises(UserError, match=r"res://main\.tscn has no Sync node.*--scene res://train"):
        check_sync(tmp_path, None)
    assert check_sync(tmp_path, "res://all.tscn") == ""


def test_a_project_without_any(tmp_path: Path) -> None:
    project(tmp_path, {"train.tscn": scene("player.gd")})
    with pytest.raises(UserError, match=r"has no Sync node, .*; add one in training mode"):
        check_sync(tmp_path, None)


HAVE_ONE = {
    "a class that extends it": {
        "my_sync.gd": "extends Sync\n",
        "main.tscn": scene("my_sync.gd"),
    },
    "a class that extends its file": {
        "my_sync.gd": f'class_name MySync\nextends "res://{ADDON}/sync.gd"\n',
        "game/their_sync.gd": "extends MySync\n",
        "main.tscn": scene("game/their_sync.gd"),
    },
    "a scene inside a scene": {
        "half.tscn": scene("train.tscn"),
        "main.tscn": scene("half.tscn"),
    },
    "a scene that code loads": {
        "player.gd": 'extends Node3D\n\nconst LEVEL := preload("levels/one.tscn")\n',
        "levels/one.tscn": scene(f"{ADDON}/sync.gd"),
    },
    "a scene that another class names": {
        "player.gd": "extends Node3D\n\nvar menu := Menu.new()\n",
        "menu.gd": 'class_name Menu\n\nvar next := "res://train.tscn"\n',
    },
    "a scene by its uid": {
        "player.gd": 'extends Node3D\n\nconst LEVEL := preload("uid://abc")\n',
        "levels/one.tscn": scene(f"{ADDON}/sync.gd", uid="uid://abc"),
    },
    "a scene in a property": {
        "main.tscn": scene("player.gd", extra='next = "res://train.tscn"\n'),
    },
}


@pytest.mark.parametrize("case", HAVE_ONE)
def test_where_one_is_found(case: str, tmp_path: Path) -> None:
    assert project(tmp_path, HAVE_ONE[case]).uncertainty(None) == ""


@pytest.mark.parametrize("what", [f"{ADDON}/sync.gd", "train.tscn"])
def test_an_autoload(what: str, tmp_path: Path) -> None:
    assert project(tmp_path, {}, f'[autoload]\n\nSync="*res://{what}"\n').uncertainty(None) == ""


UNCERTAIN = {
    "func _ready(): add_child(Sync.new())": "may add a Sync node",
    f'func _ready(): add_child(load("res://{ADDON}/sync.gd").new())': "may add a Sync node",
    "func _ready(): get_tree().change_scene_to_file(next)": "loads a resource",
    'func _ready(): load("res://levels/" + level)': "loads a resource",
    'func _ready(): load("res://level%d.tscn" % 3)': "loads a resource",
    'func answer(): return {"type": "env_info"}': "speaks the protocol itself",
    'const LEVEL := preload("uid://nobody")': "cannot be read",
}


@pytest.mark.parametrize("line", UNCERTAIN)
def test_an_uncertain_scene_is_played(line: str, tmp_path: Path) -> None:
    nodes = project(tmp_path, {"player.gd": f"extends Node3D\n\n\n{line}\n"})
    assert UNCERTAIN[line] in (nodes.uncertainty(None) or "")
    said = check_sync(tmp_path, None)
    assert "none was found, but res://player.gd" in said or "none was found, but uid://" in said
    assert "--scene res://train.tscn" in said
    (tmp_path / "player.gd").write_text(f"extends Node3D\n# {line}\n")
    assert SyncNodes(tmp_path).uncertainty(None) is None


def test_a_game_that_does_not_connect_says_the_hint(tmp_path: Path) -> None:
    with (
        contextlib.closing(HandshakeServer(0, "json", "is it the menu")) as server,
        SupervisedProcess(["sleep", "60"], name="game", folder=tmp_path) as process,
        pytest.raises(GodotError, match=r"after 0\.2 s .*; is it the menu\? is it the right scene"),
    ):
        server.wait(0.2, process)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    nodes = project(tmp_path, {"level.scn": "RSCC", "main.tscn": scene("level.scn")})
    assert nodes.uncertainty(None) == "res://level.scn cannot be read"
    assert nodes.uncertainty("res://level.scn")
    assert project(tmp_path, {"override.cfg": "[application]\n"}).uncertainty("res://main.tscn")
