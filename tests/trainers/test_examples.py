"""The trainer in one file learns on real Godot."""

import importlib.util
from pathlib import Path

import pytest

from estragon.support import paths

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ppo.py"


@pytest.mark.slow
@pytest.mark.parametrize("game", ["orchard", pytest.param("marble", marks=pytest.mark.prove)])
def test_ppo_in_one_file_runs(game: str, godot: Path, folder: Path) -> None:
    spec = importlib.util.spec_from_file_location("one_file", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    settings = module.Settings(
        env_path=str(paths.godot_project()),
        scene=f"res://examples/{game}/{game}.tscn",
        timesteps=1_024,
        save_path=folder / "ppo.pt",
    )
    assert -1.5 < module.main(settings) < 2.0
    assert (folder / "ppo.pt").exists()
