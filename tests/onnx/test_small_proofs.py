"""Tag made small: distilled to 32×32 and in int8, almost as strong as the champions."""

import re
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.support import paths
from estragon.tag.rules import ROLES
from tests.prove import Recorder, run_folder

MATCHES = 2000
POINTS = {"int8": 5.0, "32x32": 8.0, "32x32 in int8": 8.0}
CHAMPIONS = [
    str(paths.godot_project() / "tag" / "policies" / f"champion_{role}.onnx") for role in ROLES
]


def losses(line: str) -> list[float]:
    """Points of win rate that were lost against each opponent."""
    pairs = re.findall(r"([\d.]+)% → ([\d.]+)% against", line)
    return [float(before) - float(after) for before, after in pairs]


@pytest.mark.prove
@pytest.mark.parametrize("how", POINTS)
def test_small_policies_of_tag(
    how: str, godot: Path, record_result: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_folder("small")
    folder.mkdir(parents=True, exist_ok=True)
    quantize = ["--quantize", "int8", "--matches", str(MATCHES)]
    students = [folder / f"champion_{role}-32x32.npz" for role in ROLES]
    if how == "int8":
        words = ["export", "tag", *CHAMPIONS, *quantize]
    elif how == "32x32":
        words = ["distill", *CHAMPIONS, "--student", "32x32", "--matches", str(MATCHES)]
    else:
        if not all(each.exists() for each in students):
            assert main(["distill", *CHAMPIONS, "--matches", "1", "--out", str(folder)]) == 0
        words = ["export", "tag", *map(str, students), *quantize]
    capsys.readouterr()
    assert main([*words, "--out", str(folder)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "matches each" in line]
    assert len(lines) == len(ROLES)
    held = all(loss <= POINTS[how] for line in lines for loss in losses(line))
    for role, line in zip(ROLES, lines, strict=True):
        assert len(losses(line)) == 2
        said = line.split(": ", 1)[1]
        record_result(f"small tag policies: {how}, {role}", said, held=held)
    assert held, lines
