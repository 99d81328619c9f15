"""Which `--fixed-fps` makes one physics tick a frame, read from projects and packs."""

import struct
from pathlib import Path

import pytest

from estragon.envs.launch import TICKS_KEY as KEY
from estragon.envs.launch import GameProgram, Launch, packed_ticks, project_ticks


@pytest.mark.parametrize(
    ("text", "ticks"),
    [
        ("", 60),
        ("[physics]\n\ncommon/physics_ticks_per_second=90\n", 90),
        ('[physics]\n3d/physics_engine="Jolt Physics"\n', 60),
        ("[other]\ncommon/physics_ticks_per_second=90\n[physics]\n", 60),
        ("[physics]\ncommon/physics_ticks_per_second=120\n\n[rendering]\nx=1\n", 120),
    ],
)
def test_of_a_project(tmp_path: Path, text: str, ticks: int) -> None:
    (tmp_path / "project.godot").write_text(f"config_version=5\n{text}")
    assert project_ticks(tmp_path) == ticks


def test_of_a_pack(tmp_path: Path) -> None:
    setting = KEY + struct.pack("<III", 8, 2, 90)
    only_text = KEY + b" is what a script may say too"
    pack = tmp_path / "game.pck"
    pack.write_bytes(b"GDPC" + bytes(100) + only_text + bytes(50) + setting + bytes(9))
    assert packed_ticks(pack) == 90
    pack.write_bytes(b"GDPC" + only_text)
    assert packed_ticks(pack) == 60
    pack.write_bytes(b"")
    assert packed_ticks(pack) == 60


def test_of_a_program_with_its_pack_beside_it(tmp_path: Path) -> None:
    program = tmp_path / "game.x86_64"
    program.write_bytes(b"\x7fELF")
    (tmp_path / "game.pck").write_bytes(KEY + struct.pack("<III", 8, 2, 30))
    assert packed_ticks(program) == 30
    program.chmod(0o755)
    words = GameProgram(Launch(program, scene="levels/two.tscn"), tmp_path, "").command(
        1234, 5, draws=False
    )
    at = words.index("--fixed-fps")
    assert words[at + 1 : at + 3] == ["30", "res://levels/two.tscn"]
