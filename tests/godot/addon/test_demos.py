"""What experts do is recorded: of several agents, with several keys, in whole files."""

import json
from pathlib import Path
from typing import Any

import pytest

from estragon.godot.process import GodotProcess
from tests.godot.addon.peer import staged


@pytest.fixture(scope="module")
def counter(godot: Path) -> Path:
    return staged("counter", "counter with demos")


def record(project: Path, folder: Path, *arguments: str) -> dict[str, Any]:
    """Let the expert play; all files that are there afterwards."""
    for old in project.glob("demos*"):
        old.unlink()
    words = ["--headless", "--path", str(project), "--fixed-fps", "60", *arguments]
    with GodotProcess(words, folder=folder) as process:
        assert process.wait("its end", 30.0) == 0
    return {file.name: json.loads(file.read_text()) for file in project.glob("demos*")}


def counts(episode: list[Any]) -> list[float]:
    return [seen["zeta"][1] for seen in episode[0]]


def test_every_episode_ends_with_what_was_seen_last(counter: Path, tmp_path: Path) -> None:
    demos = record(counter, tmp_path, "--demos=1", "--lifetime=5", "--quit=13")
    assert list(demos) == ["demos0.json"]
    first, second = demos["demos0.json"]  # the third was not over
    assert counts(first) == counts(second) == [0, 2, 4, 5]
    assert first[1] == [[0, 0, 0], [0, 0, 2], [0, 0, 1]]


def test_a_reset_that_is_asked_for_is_not_part_of_an_episode(counter: Path, tmp_path: Path) -> None:
    arguments = ("--demos=1", "--lifetime=5", "--asks=1", "--says_done=1", "--hold=3", "--quit=20")
    (episodes,) = record(counter, tmp_path, *arguments).values()
    assert [counts(episode) for episode in episodes] == [[0, 3, 5]] * 3


def test_a_time_limit_ends_an_episode(counter: Path, tmp_path: Path) -> None:
    (episodes,) = record(counter, tmp_path, "--demos=1", "--limit=6", "--quit=20").values()
    assert counts(episodes[0]) == [0, 2, 4, 6, 7]


def test_agents_share_a_file_or_have_their_own(counter: Path, tmp_path: Path) -> None:
    shared = record(counter, tmp_path, "--demos=1", "--agents=2", "--lifetime=5", "--quit=13")
    (episodes,) = shared.values()
    assert [episode[0][0]["zeta"][0] for episode in episodes] == [0, 1, 0, 1]
    apart = record(counter, tmp_path, "--demos=2", "--agents=2", "--lifetime=5", "--quit=13")
    assert sorted(apart) == ["demos0.json", "demos1.json"]
    assert all(len(episodes) == 2 for episodes in apart.values())


def test_a_key_removes_the_last_episode(counter: Path, tmp_path: Path) -> None:
    arguments = ("--demos=1", "--agents=2", "--lifetime=5", "--unlearn=8", "--quit=13")
    (episodes,) = record(counter, tmp_path, *arguments).values()
    assert [episode[0][0]["zeta"][0] for episode in episodes] == [0, 0, 1]
