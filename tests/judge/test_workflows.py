"""The workflows and scripts: every step is one command, and all of them work here, in order."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from estragon.cli import main
from estragon.judge.evaluation_file import Evaluation
from estragon.judge.regress import Verdict
from estragon.support.errors import CHECK_FAILED, OK

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
BASELINES = ROOT / "rl_training" / "baselines"
INSTALL = 'python -m pip install -c constraints.txt -e ".[sb3,onnx]"'
SHORT = {"--timesteps": 256, "--episodes": 4, "--num_envs": 2, "--minutes": 0.1}
"""Largest values here: they only say how long something takes."""
UNTRAINED = {"rl_nightly.yml": {"validate", "regress"}}
"""What may fail after so short a training."""


def steps(name: str) -> list[dict[str, Any]]:
    workflow = yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf-8"))
    assert workflow["defaults"]["run"]["shell"] == "bash"  # on Windows, too
    (job,) = workflow["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def shortened(command: str) -> list[str]:
    words = shlex.split(command.replace("$GITHUB_STEP_SUMMARY", "summary.md"))
    for index, option in enumerate(words[:-1]):
        if option in SHORT:
            words[index + 1] = str(min(SHORT[option], int(words[index + 1])))
    return [str(ROOT / word) if word == "godot" else word for word in words]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "rl_smoke_test.yml",
        "rl_regression_test.yml",
        "rl_bug_hunt.yml",
        pytest.param("rl_nightly.yml", marks=pytest.mark.prove),
    ],
)
def test_every_step_works_here(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, godot: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(BASELINES, "rl_training/baselines")
    commands = [step["run"] for step in steps(name) if "run" in step]
    assert commands.pop(0) == INSTALL
    for command in commands:
        assert "\n" not in command
        words = shortened(command)
        assert words[0] == "estragon"
        code = main(words[1:])
        assert code == OK or (code == CHECK_FAILED and words[2] in UNTRAINED.get(name, ())), command
    (upload,) = [step for step in steps(name) if "upload-artifact" in step.get("uses", "")]
    for pattern in upload["with"]["path"].split():
        assert list(Path().glob(pattern)), pattern
    assert Path("summary.md").stat().st_size
    if name == "rl_regression_test.yml":
        verdict = Verdict.read(Path("verdict.json"))
        assert {each.name for each in verdict.findings} >= {"mean_reward", "success_rate"}


FLAGS = {
    "validate_training_metrics.py": "--experiment --min_reward --max_physics_time",
    "evaluate_model.py": "--model --episodes --output",
    "check_regression.py": "--current --baseline --tolerance",
    "generate_report.py": "--metrics --output",
}


@pytest.mark.parametrize("door", FLAGS)
def test_scripts_have_the_flags_of_their_callers(door: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "rl_training" / door, "--help"],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    for flag in FLAGS[door].split():
        assert flag in done.stdout, flag


def test_scripts_exit_as_documented(tmp_path: Path) -> None:
    """As the callers of the first check_regression.py use it: files with three means."""
    before, now = tmp_path / "before.json", tmp_path / "now.json"
    before.write_text(json.dumps({"mean_reward": -5.0, "success_rate": 0.5}))
    script = ROOT / "rl_training" / "check_regression.py"
    files = ["--current", str(now), "--baseline", str(before)]
    words = [sys.executable, str(script), *files, "--tolerance", "0.1"]
    for text, code in (("-4.9", 0), ("-9", 1), ("x", 2)):
        now.write_text(f'{{"mean_reward": {text}, "success_rate": 0.5}}')
        done = subprocess.run(words, check=False, capture_output=True)
        assert done.returncode == code


def test_the_baseline_was_made_by_the_documented_command() -> None:
    found = Evaluation.read(BASELINES / "vr_locomotion_baseline.json")
    assert len(found.episodes) >= 100
    assert found.model == "vr_locomotion_baseline.onnx"
    from estragon.judge.provenance import digest_of

    assert found.model_digest == digest_of(BASELINES / found.model)
    latest = found.baseline[0]
    assert latest.reason
    assert latest.commit
    assert latest.command.startswith("estragon judge evaluate ")
    makefile = (ROOT / "Makefile").read_text()
    recipe = makefile.replace("$(BASELINE)", "rl_training/baselines/vr_locomotion_baseline")
    assert latest.command in recipe
