"""`estragon bench` writes the figures as documented."""

import json
from pathlib import Path

from estragon.cli import main

KEYS = {"name", "value", "unit", "arenas", "agents", "repeat", "note"}


def test_a_short_run_leaves_every_figure(tmp_path: Path) -> None:
    output = tmp_path / "latest.json"
    assert main(["bench", "engine", "--seconds", "0.05", "--output", str(output)]) == 0
    figures = json.loads(output.read_text())
    assert all(set(figure) == KEYS and figure["value"] > 0 for figure in figures)
    assert figures[0]["name"] == "engine_agent_steps_per_s"
    arenas = [f["arenas"] for f in figures if f["name"].startswith("engine_agent_steps_per_s_")]
    assert arenas == sorted(arenas)
    assert (arenas[0], arenas[-1]) == (64, 8192)


def test_the_godot_figures_are_measured_in_godot(tmp_path: Path) -> None:
    output = tmp_path / "godot.json"
    assert main(["bench", "godot", "--seconds", "0.2", "--output", str(output)]) == 0
    figures = json.loads(output.read_text())
    assert [figure["arenas"] for figure in figures] == [1, 1, 1, 8, 8, 8, 32, 32, 32]
    assert all(set(figure) == KEYS and figure["value"] > 0 for figure in figures)
