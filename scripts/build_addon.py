#!/usr/bin/env python3
"""Pack the addon as Godot's asset library has it: dist/godot_rl_agents.zip, to unpack in a project.

Standard library only. The same files give the same bytes.
"""

import argparse
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "godot"
ADDON = PROJECT / "addons" / "godot_rl_agents"
OLD_ENOUGH = (1980, 1, 1, 0, 0, 0)
"""The time of every file: the earliest that a zip can say."""


def build(target: Path) -> Path:
    """Write the zip, whole or not at all."""
    files = {file.relative_to(PROJECT).as_posix(): file for file in ADDON.rglob("*")}
    files = {name: file for name, file in files.items() if file.is_file()}
    files[f"{ADDON.relative_to(PROJECT).as_posix()}/LICENSE"] = ROOT / "LICENSE"
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, OLD_ENOUGH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name].read_bytes())
    unfinished.replace(target)
    return target


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("target", nargs="?", type=Path, default=ROOT / "dist/godot_rl_agents.zip")
    print(build(parser.parse_args().target))
