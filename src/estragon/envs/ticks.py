"""How many physics ticks a second a game has: what `--fixed-fps` must be for one tick a frame."""

import mmap
import re
import struct
from pathlib import Path

USUAL = 60
SETTING = "common/physics_ticks_per_second"
KEY = f"physics/{SETTING}".encode()
INTEGER = 2
"""The type of a whole number in Godot's binary files."""


def project_ticks(project: Path) -> int:
    """From the project's own settings."""
    text = (project / "project.godot").read_text(encoding="utf-8", errors="replace")
    section = re.search(r"^\[physics\]\s*$(.*?)(?=^\[|\Z)", text, re.DOTALL | re.MULTILINE)
    found = section and re.search(rf"^{SETTING}=(\d+)\s*$", section[1], re.MULTILINE)
    return int(found[1]) if found else USUAL


def packed_ticks(file: Path) -> int:
    """From the settings inside a pack, or inside a program that carries its pack."""
    beside = file.with_suffix(".pck")
    for each in (file, beside):
        if each.is_file() and each.stat().st_size and (ticks := _find(each)):
            return ticks
    return USUAL


def _find(file: Path) -> int | None:
    # In a pack, the settings are: key, length of the value, type of the value, value.
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(KEY)
        while at >= 0:
            value = at + len(KEY)
            if value + 12 <= len(data):
                length, kind, ticks = struct.unpack_from("<III", data, value)
                if kind == INTEGER and length == 8 and 0 < ticks <= 100_000:
                    return int(ticks)
            at = data.find(KEY, at + 1)
    return None
