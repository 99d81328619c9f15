"""Files that are no whole match are refused with one line that says where and what is wrong."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.show import trajectory_reader
from estragon.show.trajectory import Tagging
from estragon.show.trajectory_reader import read_trajectory
from estragon.support.errors import UserError
from estragon.tag.layout import load_layout
from estragon.tag.rules import load_rules
from tests.show.logged_matches import log_matches, old_log, records, write_records
from tests.tag.staging import with_episode

Lines = list[dict[str, Any]]
FUZZED = 250


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short match of 7 moments: a start, 14 steps, the timeout and the end."""
    rules = with_episode(load_rules(), time_limit_sec=0.3)
    (path,), _ = log_matches(tmp_path_factory.mktemp("good"), rules=rules)
    assert len(records(path)) == 17
    return path


def complaint_of(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_trajectory(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert text.isprintable()
    assert len(text) < len(str(path)) + 260
    return text.removeprefix(f"{path}: ")


def change(line: int, **keys: Any) -> Callable[[Lines], None]:
    def apply(lines: Lines) -> None:
        lines[line - 1].update(keys)

    return apply


def drop(line: int, key: str) -> Callable[[Lines], None]:
    def apply(lines: Lines) -> None:
        del lines[line - 1][key]

    return apply


def remove(*wanted: int) -> Callable[[Lines], None]:
    def apply(lines: Lines) -> None:
        for line in sorted(wanted, reverse=True):
            del lines[line - 1]

    return apply


def repeat(line: int, at: int) -> Callable[[Lines], None]:
    def apply(lines: Lines) -> None:
        lines.insert(at - 1, dict(lines[line - 1]))

    return apply


RECORDS: dict[str, tuple[Callable[[Lines], None], str]] = {
    "no start": (remove(1), "line 1: expected an episode_start before anything else"),
    "no end": (remove(17), "truncated: no episode_end"),
    "no steps": (remove(*range(2, 17)), "line 2: no steps before the episode_end"),
    "two starts": (repeat(1, 2), "line 2: a second episode_start: a file holds one match"),
    "two matches": (repeat(1, 18), "line 18: more after the episode_end: a file holds one match"),
    "a newer format": (change(1, format=2), "line 1: format 2; this reads format 1"),
    "another type": (change(3, type="sprint"), "line 3: type: invalid value 'sprint'"),
    "no type": (drop(3, "type"), "line 3: Object missing required field 'type'"),
    "no place": (drop(3, "pos"), "line 3: Object missing required field 'pos'"),
    "a flat place": (change(3, pos=[1.0, 2.0]), "line 3: pos: expected 'array' of length 3"),
    "a place in words": (
        change(3, pos=["1", 2.0, 3.0]),
        "line 3: pos[0]: expected 'float', got 'str'",
    ),
    "a place far away": (change(3, pos=[0.0, 1e7, 0.0]), "line 3: pos[1]: expected 'float' <="),
    "no place at all": (change(3, pos=None), "line 3: pos: expected 'array', got 'null'"),
    "too few rays": (change(5, dists=[1.0] * 35), "line 5: dists: expected 36 numbers, got 35"),
    "too many types": (change(5, types=[0] * 37), "line 5: types: expected 36 numbers, got 37"),
    "an unknown type of ray": (change(5, types=[3] * 36), "line 5: types[0]: expected 'int' <= 2"),
    "a stranger": (change(4, agent="Agent3"), "line 4: agent: expected Agent1 or Agent2"),
    "an agent too few": (
        remove(5),
        "line 5: agents out of step: Agent1 at tick 6, where the other agent's record of tick 3",
    ),
    "one agent twice": (change(5, agent="Agent1"), "line 5: agents out of step: Agent1 at tick 3"),
    "the last agent missing": (remove(16), "line 16: agents out of step: only Agent1 has tick 18"),
    "other ticks": (change(5, tick=4), "line 5: agents out of step: Agent2 at tick 4"),
    "time that goes back": (change(6, tick=2), "line 6: tick 2 comes after tick 3"),
    "a tick before time": (change(6, tick=-3), "line 6: tick: expected 'int' >= 0"),
    "half a tick": (change(6, tick=6.5), "line 6: tick: expected 'int | null', got 'float'"),
    "two seekers": (change(5, is_it=True), "line 5: is_it: expected one seeker at tick 3"),
    "a maybe": (change(5, is_it=1), "line 5: is_it: expected 'bool', got 'int'"),
    "another end": (change(17, tick=19), "line 17: tick: the last step is at 18, the end at 19"),
    "a winner from elsewhere": (change(17, winner="Bob"), "line 17: winner: expected Agent1 or"),
    "another reason": (change(17, terminal_reason="rain"), "line 17: terminal_reason: invalid"),
    "one name for two": (change(1, agents=["A", "A"]), "line 1: agents: expected two different"),
    "a seeker from elsewhere": (change(1, seeker="Bob"), "line 1: seeker: no agent 'Bob'"),
    "a box without size": (
        change(1, layout={"boxes": [{"at_m": [0, 0], "size_m": [0, 1, 1]}]}),
        "line 1: layout.boxes[0].size_m[0]: expected 'float' > 0.0",
    ),
    "no time": (change(1, ticks_per_second=0), "line 1: ticks_per_second: expected 'int' >= 1"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_wrong_record_is_named(name: str, good: Path, tmp_path: Path) -> None:
    damage, says = RECORDS[name]
    lines = records(good)
    damage(lines)
    assert complaint_of(write_records(tmp_path / "bad.jsonl", lines)).startswith(says)


def test_a_tag_of_oneself(good: Path, tmp_path: Path) -> None:
    lines = records(good)
    lines.insert(3, {"type": "tag", "attacker": "Agent1", "target": "Agent1"})
    path = write_records(tmp_path / "bad.jsonl", lines)
    assert complaint_of(path) == "line 4: Agent1 cannot tag itself"


BYTES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "empty: expected the log of a match"),
    "blank lines": (b"\n \n\r\n", "empty: expected the log of a match"),
    "binary junk": (bytes(range(256)) * 40, "line 1: not a JSON object"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "line 1: not a JSON object"),
    "another language": ("größe: 5\n".encode("latin-1"), "line 1: not a JSON object"),
    "another log": (b'{"loss": 0.5}\n', "line 1: Object missing required field 'type'"),
    "a list": (b"[1, 2]\n", "line 1: Expected 'object', got 'array'"),
    "a number": (b"7\n", "line 1: Expected 'object', got 'int'"),
}


@pytest.mark.parametrize("name", BYTES)
def test_what_is_no_log_is_said_so(name: str, tmp_path: Path) -> None:
    data, says = BYTES[name]
    path = tmp_path / "bad.jsonl"
    path.write_bytes(data)
    assert complaint_of(path).startswith(says)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "nan", "inf"])
def test_a_number_that_is_not_finite(number: str, good: Path, tmp_path: Path) -> None:
    lines = good.read_text().splitlines(keepends=True)
    lines[2] = lines[2].replace('"pos":[', f'"pos":[{number},')
    path = tmp_path / "bad.jsonl"
    path.write_text("".join(lines))
    assert complaint_of(path) == "line 3: a number that is not finite"


def test_a_number_too_large_for_a_double(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(good.read_text().replace('"vel":[0.0', '"vel":[1e999', 1))
    assert complaint_of(path) == "line 2: vel[0]: number out of range"


def test_wherever_a_file_is_cut_off_it_is_noticed(good: Path, tmp_path: Path) -> None:
    data = good.read_bytes()
    path = tmp_path / "cut.jsonl"
    ends = [place for place, byte in enumerate(data) if byte == ord("\n")]
    for length in [*range(1, len(data) - 1, 97), *ends[:-1]]:
        path.write_bytes(data[:length])
        complaint = complaint_of(path)
        line = data[:length].count(b"\n") + 1
        whole = data[length : length + 1] == b"\n" or data[length - 1 : length] == b"\n"
        expected = "truncated: no episode_end" if whole else f"line {line}: truncated in the"
        assert complaint.startswith(expected), length
    path.write_bytes(data[:-1])
    assert read_trajectory(path).reason == "timeout", "only the last line's end is missing"


def test_an_endless_line_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"{")
    os.truncate(path, 2 * 2**30)  # takes no room on the disk
    assert complaint_of(path) == "line 1: longer than 1048576 bytes: not a record of a match"


def test_an_endless_file_is_refused(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectory_reader, "MAX_LINES", 10)
    assert complaint_of(good) == "more than 10 lines: too long for one match"


@pytest.mark.parametrize("name", ["nowhere.jsonl", ""])
def test_what_is_no_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*: no such file"):
        read_trajectory(tmp_path / name)


def test_no_damage_leads_to_another_error(good: Path, tmp_path: Path) -> None:
    """Bytes changed, lost or doubled at random: it reads, or it says what is wrong."""
    chance = random.Random(7)
    data = good.read_bytes()
    path = tmp_path / "fuzzed.jsonl"
    refused = 0
    for _ in range(FUZZED):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(damaged))
            kind = chance.randrange(3)
            if kind == 0:
                damaged[place] = chance.randrange(256)
            elif kind == 1:
                del damaged[place : place + chance.randint(1, 3000)]
            else:
                damaged[place:place] = damaged[place : place + chance.randint(1, 3000)]
        path.write_bytes(bytes(damaged))
        try:
            read_trajectory(path)
        except UserError as error:
            refused += str(error).isprintable()
    assert refused > FUZZED / 2, "seed 7"


@pytest.mark.parametrize("begins_at", [0.0, 1_700_000_000.25])
def test_an_older_log_is_read(begins_at: float, tmp_path: Path) -> None:
    trajectory = read_trajectory(old_log(tmp_path / "old.jsonl", begins_at=begins_at))
    rules = load_rules()
    assert trajectory.agents == ("Red", "Blue")
    assert trajectory.ticks.tolist() == [0, 3, 6, 9, 12]
    assert trajectory.layout.boxes == load_layout(rules.layout, rules).boxes
    assert trajectory.forwards[:, 0].tolist() == [[0.0, 1.0], *[[1.0, 0.0]] * 4]
    assert trajectory.sees.tolist() == [[False, False], *[[False, True]] * 4]
    assert trajectory.on_floor.all()
    assert not trajectory.immune.any()
    assert trajectory.tags == [Tagging(12, 0, 1)]
    assert (trajectory.reason, trajectory.winner) == ("tag", -1)
    assert trajectory.start.time_limit_sec == rules.episode.time_limit_sec
    assert trajectory.game_rules().eyes.rays == trajectory.ray_distances.shape[2] == 3


def test_an_older_log_of_a_timeout(tmp_path: Path) -> None:
    path = old_log(tmp_path / "old.jsonl")
    lines = [line for line in records(path) if line["type"] != "tag"]
    assert read_trajectory(write_records(path, lines)).reason == "timeout"


def test_an_older_log_whose_rays_change(tmp_path: Path) -> None:
    path = old_log(tmp_path / "old.jsonl")
    lines = records(path)
    lines[4]["types"] = [0, 0]
    assert complaint_of(write_records(path, lines)) == "line 5: types: expected 3 numbers, got 2"


def test_an_older_log_with_a_third_agent(tmp_path: Path) -> None:
    path = old_log(tmp_path / "old.jsonl")
    lines = records(path)
    lines[3]["agent"] = "Green"
    says = "line 4: agent: expected Red or Blue, got 'Green'"
    assert complaint_of(write_records(path, lines)) == says


def test_unknown_keys_are_ignored(good: Path, tmp_path: Path) -> None:
    lines = records(good)
    for line in lines:
        line["mood"] = {"happy": [True]}
    lines[0]["eyes"]["colour"] = "blue"
    lines[0]["layout"]["mood"] = "sunny"
    path = tmp_path / "more.jsonl"
    path.write_text("\r\n\n".join(json.dumps(line) for line in lines))
    one, other = read_trajectory(path), read_trajectory(good)
    np.testing.assert_array_equal(one.positions, other.positions)
    assert one.start == other.start
