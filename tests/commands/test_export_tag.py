"""`estragon export tag`: a run or policy files as `.onnx` files, or one line that says why not."""

import contextlib
import json
import sys
from functools import partial
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.commands.play import level_names
from estragon.onnx.compare import GodotRuntime
from estragon.onnx.metadata import read_metadata as metadata
from estragon.onnx.tag_export import LEVELS, MANIFEST
from estragon.onnx.tag_export import load_exported as policy_in
from estragon.selfplay.config import RoleChoice
from estragon.selfplay.evaluation import StageEvaluator
from estragon.selfplay.session import STAGES, start_session
from estragon.support import paths
from estragon.support.interrupts import StopRequest
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.policy_files import load_policy, save_policies
from estragon.tag.rules import ROLES, Role, Rules, load_rules
from tests.selfplay.staging import CONFIG, CPU, STEPS_PER_UPDATE, Onlooker, short_rules, task_of

LARGEST_BYTES = 200_000


def train(root: Path, role: RoleChoice = "both", opponent: str = "league") -> Path:
    """A tiny run that comes to every stage; returns its folder."""
    task = task_of(role, opponent, rules=short_rules(seconds=0.5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "estragon.selfplay.session.StageEvaluator", partial(StageEvaluator, matches=2)
        )
        steps = 20 * STEPS_PER_UPDATE
        session = start_session(root, task, CONFIG, steps, CPU)
        session.write_metadata({})
        assert session.run(Onlooker(), StopRequest())
    return session.folder.path


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("trained")
    train(root)
    return root


@pytest.fixture
def shared_godot(godot_runtime: GodotRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands use the Godot process of all tests instead of starting one."""
    monkeypatch.setattr(
        "estragon.onnx.tag_export.GodotRuntime", lambda: contextlib.nullcontext(godot_runtime)
    )


def test_a_run_becomes_two_checked_files(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    assert main(["export", "tag", "--out", str(tmp_path / "made")]) == 0
    said = capsys.readouterr().out
    assert said.count("in onnxruntime and in Godot (3,591 observations)") == 2
    assert {path.name for path in (tmp_path / "made").iterdir()} == {"seeker.onnx", "hider.onnx"}
    rules = short_rules(seconds=0.5)
    for role in ROLES:
        path = tmp_path / "made" / f"{role}.onnx"
        about = metadata(path)
        assert about["role"] == role
        assert about["stage"] == "100%"
        assert about["rules_hash"] == rules.digest
        assert about["observation_size"] == str(rules.observation.size)
        assert (root / "trainer/logs/runs/ppo-league" / about["run"]).is_dir()
        trained = load_policy(root / "trainer" / f"policy_{role}.npz", rules, role)
        assert (policy_in(path, rules).weights[0][0] == trained.weights[0][0]).all()


@pytest.mark.usefixtures("shared_godot")
def test_all_levels_and_their_list(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "tag", "--run", str(root), "--levels", "--out", str(tmp_path)]) == 0
    listed = json.loads((tmp_path / MANIFEST).read_text())["levels"]
    assert [level["name"] for level in listed] == list(LEVELS)
    assert [level["trained"] for level in listed] == list(LEVELS.values())
    for level in listed:
        for role in ROLES:
            about = metadata(tmp_path / level[role])
            assert (about["role"], about["stage"]) == (role, level["name"])
            assert int(about["agent_steps"]) == level["agent_steps"]


@pytest.mark.usefixtures("shared_godot")
def test_the_files_of_a_policy_that_plays_both_roles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = load_rules()
    both = {role: FrozenPolicy.untrained(rules, role, 1, hidden=8) for role in ROLES}
    save_policies(tmp_path / "both.npz", both, rules)
    monkeypatch.chdir(tmp_path)
    assert main(["export", "tag", "both.npz"]) == 0
    names = {path.name for path in (tmp_path / "policies").iterdir()}
    assert names == {"both_seeker.onnx", "both_hider.onnx"}


def test_what_cannot_be_exported(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    train(tmp_path / "alone", "hider", "bot:chaser")
    rules = load_rules()
    policy: dict[Role, FrozenPolicy] = {
        "seeker": FrozenPolicy.untrained(rules, "seeker", 1, hidden=8)
    }
    save_policies(tmp_path / "one.npz", policy, rules)
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 and no more")
    (tmp_path / "file").touch()
    twins = ["one.npz", str(tmp_path / "one.npz")]
    for words, says in (
        ([], "trainer/logs/latest_run.txt"),
        (["--run", "nowhere"], "no run with a checkpoint (state.pt): nowhere"),
        (["none.npz"], "cannot read policy none.npz"),
        (["broken.npz"], "broken.npz is not an Estragon policy, or it is damaged"),
        (["one.npz", "--levels"], "give policy files, or a run"),
        (twins, "two files would become one.onnx"),
        (["--run", "alone", "--levels"], "only the hider learned; levels need both"),
        (["--run", str(root), "--rules-file", "file"], "--rules-file"),
        (["one.npz", "--out", "file"], "cannot write file/one.onnx"),
    ):
        assert main(["export", "tag", *words]) == 2, words
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1
    assert not (tmp_path / "policies" / "one.onnx").exists()


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_without_the_extra_one_line_says_what_to_install(
    missing: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if missing == "onnx":
        monkeypatch.delitem(sys.modules, "estragon.onnx.tag_export", raising=False)
        monkeypatch.delattr("estragon.onnx.tag_export", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["export", "tag", "--run", str(root), "--out", str(root / "made")]) == 2
    error = capsys.readouterr().err
    assert missing in error
    assert "pip install 'estragon[onnx]'" in error
    assert error.count("\n") == 1


@pytest.mark.usefixtures("shared_godot")
def test_a_model_that_acts_otherwise_is_not_put_in_place(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("estragon.onnx.tag_export.CLIP", 0.5)
    (tmp_path / "seeker.onnx").write_text("what was there")
    assert main(["export", "tag", "--run", str(root), "--out", str(tmp_path)]) == 2
    assert "seeker.onnx" in (error := capsys.readouterr().err)
    assert "differ from the policy" in error
    assert (tmp_path / "seeker.onnx").read_text() == "what was there"


def test_the_policies_that_come_with_the_game() -> None:
    """They are of today's rules, small, of one run, and better from level to level."""
    rules: Rules = load_rules()
    folder = paths.policies_folder()
    listed = json.loads((folder / MANIFEST).read_text())
    assert listed["rules_hash"] == rules.digest, "the rules changed: make policies"
    assert level_names() == list(LEVELS)
    assert set(LEVELS.values()) <= {f"{100 * share:.0f}%" for share in STAGES}
    files = {path.name for path in folder.glob("*.onnx")}
    assert files == {level[role] for level in listed["levels"] for role in ROLES}
    for name in files:
        assert (folder / name).stat().st_size < LARGEST_BYTES
        about = metadata(folder / name)
        assert (about["run"], about["rules_hash"]) == (listed["run"], rules.digest)
