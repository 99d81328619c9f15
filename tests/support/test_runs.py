"""Every run has a folder of its own, under names that other tools know."""

from pathlib import Path

import pytest

from estragon.selfplay.checkpoint import TagRun
from estragon.support.errors import UserError
from estragon.support.runs import RunFolder, latest_run


def with_state(folder: TagRun) -> TagRun:
    folder.state.write_bytes(b"x")
    return folder


def test_the_names_are_the_contracts(tmp_path: Path) -> None:
    folder = TagRun.timestamped(tmp_path, "ppo-league")
    run = tmp_path / "trainer" / "logs" / "runs" / "ppo-league" / folder.run_id
    assert folder.path == run
    assert run.is_dir()
    assert folder.metadata == run / "metadata.json"
    assert folder.metrics == run / "metrics.csv"
    assert folder.tensorboard == run / "tensorboard"
    assert folder.checkpoint("seeker", 42) == run / "checkpoints" / "seeker_00042.pt"
    assert folder.policy("policy_hider") == tmp_path / "trainer" / "policy_hider.pt"
    folder.mark_latest()
    latest = tmp_path / "trainer" / "logs" / "latest_run.txt"
    assert latest.read_text() == f"runs/ppo-league/{folder.run_id}\n"


def test_no_two_runs_share_a_folder(tmp_path: Path) -> None:
    folders = [TagRun.timestamped(tmp_path, "ppo-league") for _ in range(5)]
    assert len({folder.path for folder in folders}) == 5


def test_a_run_is_found_by_any_of_its_names(tmp_path: Path) -> None:
    one, other = (
        with_state(TagRun.timestamped(tmp_path, name)) for name in ("ppo-league", "ppo-x")
    )
    other.mark_latest()
    assert TagRun.find(tmp_path, "latest") == other
    one.mark_latest()
    assert TagRun.find(tmp_path, "latest") == one
    assert TagRun.find(tmp_path, one.run_id) == one
    assert TagRun.find(tmp_path, f"runs/ppo-x/{other.run_id}") == other
    assert TagRun.find(tmp_path, str(other.path)) == other


def test_where_there_is_nothing_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"latest_run\.txt"):
        TagRun.find(tmp_path, "latest")
    with pytest.raises(UserError, match="no run with a checkpoint"):
        TagRun.find(tmp_path, "20200101-000000")
    TagRun.timestamped(tmp_path, "ppo-league").mark_latest()
    with pytest.raises(UserError, match="no run with a checkpoint"):
        TagRun.find(tmp_path, "latest")


@pytest.mark.parametrize("name", ["", "..", "a**b", "[", "/", "~", "x" * 300, "a\nb"])
def test_any_name_is_answered(tmp_path: Path, name: str) -> None:
    with_state(TagRun.timestamped(tmp_path, "ppo-league"))
    with pytest.raises(UserError):
        TagRun.find(tmp_path, name)


def test_a_damaged_pointer_to_the_latest_run(tmp_path: Path) -> None:
    pointer = tmp_path / "trainer" / "logs" / "latest_run.txt"
    pointer.parent.mkdir(parents=True)
    for contents in (b"\xff\xfe", b"", b"\x00", b"a**b\n"):
        pointer.write_bytes(contents)
        with pytest.raises(UserError):
            TagRun.find(tmp_path, "latest")


@pytest.mark.parametrize("in_the_way", ["trainer", "trainer/logs", "trainer/logs/runs/ppo-league"])
def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, in_the_way: str) -> None:
    path = tmp_path / in_the_way
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a file")
    with pytest.raises(UserError, match="cannot create"):
        TagRun.timestamped(tmp_path, "ppo-league")


def test_the_latest_pointer_may_be_absolute_and_must_be_one_line(tmp_path: Path) -> None:
    pointer = tmp_path / "trainer" / "logs" / "latest_run.txt"
    pointer.parent.mkdir(parents=True)
    pointer.write_text(f"{tmp_path / 'elsewhere'}\n")
    assert latest_run(tmp_path) == tmp_path / "elsewhere"
    pointer.write_text("run_1")
    assert latest_run(tmp_path) == pointer.parent / "run_1"
    for text in ("", "\n", "run_1\nrun_2\n"):
        pointer.write_text(text)
        with pytest.raises(UserError, match="expected one line"):
            latest_run(tmp_path)


def test_numbered_runs_take_the_first_free_number(tmp_path: Path) -> None:
    (tmp_path / "walk_2").mkdir()
    names = [RunFolder.numbered(tmp_path, "walk").run_id for _ in range(2)]
    assert names == ["walk_1", "walk_3"]
    with pytest.raises(UserError, match=r"experiment_name.*a/b"):
        RunFolder.numbered(tmp_path, "a/b")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file"):
        RunFolder.numbered(tmp_path / "file", "walk")


def test_an_output_directory_stands_for_its_latest_run(tmp_path: Path) -> None:
    run = with_state(TagRun.timestamped(tmp_path / "out", "ppo-league"))
    run.mark_latest()
    assert TagRun.find(tmp_path, str(tmp_path / "out")) == run
