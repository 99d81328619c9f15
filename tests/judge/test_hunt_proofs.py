"""Planted bugs in copies of six games: which are found, how surely traces replay, how short.

The bugs are in tests/judge/bugs/*.json. All nine of a game are planted in one copy, which is hunted
with all explorers and, beside it, with random actions alone: two games side by side each, for
`ESTRAGON_HUNT_MINUTES` (10 by default), or 5 minutes if all are found by then. Minutes are those of
two cores that do nothing else, so that a busy machine shows the same.

A finding belongs to the first bug whose copy, with only that bug, shows its signature when the
trace is replayed, or else to the only bug without which the copy with all others does not show it;
to none if the clean game shows it too. Every trace is replayed ten times. The clean games are
hunted for the same time, without an alarm.

Every part is resumed where it was interrupted, and may be run alone, such as
`-k "planted and marble"`. The last proof adds up what all parts have shown.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from estragon.godot.project import ready_project
from estragon.judge.hunt.state import Bug as FoundBug
from estragon.judge.hunt.state import HuntState
from estragon.judge.hunt.traces import Trace, open_trace, replay
from estragon.support.files import read_json, write_json, write_whole
from tests.judge.hunt_by_processor import CORES
from tests.judge.planted import GAMES, Bug, bugs_of, copy_with
from tests.prove import ROOT, Recorder, run_folder

pytestmark = pytest.mark.prove
MINUTES = float(os.environ.get("ESTRAGON_HUNT_MINUTES", "10"))
EARLY = 5.0
REPLAYS = 10
AT_ONCE = 2
PAGE = ROOT / "docs" / "hunting_results.md"
EXPLORERS = {"all": [], "random": ["--explorers", "random"]}


class Attributed(msgspec.Struct):
    """A finding, and the bugs that it belongs to."""

    oracle: str
    explorer: str
    found_sec: float
    ratio: float
    """Length of its trace, compared with the first one."""
    owners: list[str]
    is_alarm: bool
    """Whether the clean game shows it."""
    replayed: int = 0
    replays: int = 0


class Hunted(msgspec.Struct):
    """What a hunt has found; of each finding, by the name and length of its trace."""

    seconds: float = 0.0
    findings: dict[str, Attributed] = {}

    @property
    def bugs(self) -> dict[str, list[Attributed]]:
        """The findings of each bug that was found."""
        found: dict[str, list[Attributed]] = {}
        for finding in self.findings.values():
            for owner in finding.owners:
                found.setdefault(owner, []).append(finding)
        return found


def folder_of(game: str) -> Path:
    return run_folder("hunt") / game


def hunt(game: str, copies: dict[str, Path], outputs: dict[str, Path], minutes: float) -> None:
    """Hunt copies of a game side by side until each was played for that long."""
    bug = bugs_of(game)[0]
    running = []
    for name, output in outputs.items():
        file = output / "hunt.json"
        played = read_json(file, HuntState).played_sec if file.exists() else 0.0
        if 60.0 * minutes - played < 1.0:
            continue
        words = ["--scene", bug.scene, "--minutes", f"{minutes - played / 60.0:.3f}"]
        words += ["--output", str(output), "--games", str(CORES), *EXPLORERS.get(name, [])]
        for key, value in bug.arguments.items():
            words += ["--argument", f"{key}={value}"]
        output.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.judge.hunt_by_processor", str(copies[name]), *words]
        with (output / "log.txt").open("ab") as log:
            running.append(
                subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
            )
    codes = [each.wait() for each in running]
    assert set(codes) <= {0, 1}, f"{outputs}: exit codes {codes}"


def shows(file: Path, game: Path) -> bool:
    trace = Trace.read(file)
    with open_trace(trace, game) as opened:
        return replay(trace, opened).finding is not None


def attribute(game: str, name: str, bugs: list[Bug]) -> Hunted:
    """Which findings belong to which bugs; kept in a file, because it takes long."""
    folder = folder_of(game)
    output, file = folder / name, folder / f"{name}.json"
    result = read_json(file, Hunted) if file.exists() else Hunted()
    state = read_json(output / "hunt.json", HuntState)
    result.seconds = state.played_sec
    known, result.findings = result.findings, {}
    clean = folder / "clean"

    def needed_by(trace: Path) -> list[str]:
        """The bug without which the others do not show it, if that is one alone."""
        found = [each.id for each in bugs if not shows(trace, without(each))]
        return found if len(found) == 1 else []

    def without(bug: Bug) -> Path:
        others = [each for each in bugs if each is not bug]
        return copy_with(others, folder / f"without_{bug.id}", clean)

    def judge(bug: FoundBug) -> Attributed:
        key, trace = f"{bug.trace} {bug.length}", output / bug.trace
        if key in known:
            return known[key]
        is_alarm, owners = shows(trace, clean), []
        if not is_alarm:
            shown = (each.id for each in bugs if shows(trace, folder / each.id))
            owners = list(itertools.islice(shown, 1)) or needed_by(trace)
        ratio = bug.length / max(bug.first_length, 1)
        return Attributed(bug.oracle, bug.explorer, bug.found_sec, ratio, owners, is_alarm)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for bug, finding in zip(state.bugs, pool.map(judge, state.bugs), strict=True):
            result.findings[f"{bug.trace} {bug.length}"] = finding
    write_json(file, msgspec.to_builtins(result))
    return result


def copies_of(game: str, bugs: list[Bug]) -> Path:
    """The folder with all copies of a game: clean, with one bug each, with all bugs."""
    folder = folder_of(game)
    clean = copy_with([], folder / "clean")
    ready_project(clean, bugs[0].scene)
    copy_with(bugs, folder / "bugs", clean)
    for bug in bugs:
        copy_with([bug], folder / bug.id, clean)
    return folder


@pytest.mark.parametrize("game", GAMES)
def test_planted_bugs(game: str, godot: Path, record_result: Recorder) -> None:
    bugs = bugs_of(game)
    folder = copies_of(game, bugs)
    for minutes in sorted({min(EARLY, MINUTES), MINUTES}):
        hunt(
            game,
            dict.fromkeys(EXPLORERS, folder / "bugs"),
            {name: folder / name for name in EXPLORERS},
            minutes,
        )
        mine, random = (attribute(game, name, bugs) for name in EXPLORERS)
        write_page(game, bugs, mine, random)
        if len(mine.bugs) == len(bugs):
            break
    found = mine.findings.values()
    ratio = statistics.median([each.ratio for each in found]) if found else 1.0
    alarms = sum(each.is_alarm for each in found)
    others = sum(not each.is_alarm and not each.owners for each in found)
    result = (
        f"{len(mine.bugs)} of {len(bugs)} planted bugs found in {mine.seconds / 60:.1f} minutes, "
        f"by random actions alone {len(random.bugs)}; median trace {100 * ratio:.0f}% of its first "
        f"length; {alarms} false alarms, {others} findings of no single bug"
    )
    is_done = len(mine.bugs) == len(bugs) or mine.seconds > 599.0
    record_result(f"hunt: {game}", result, held=is_done and not alarms)
    assert not alarms, result


@pytest.mark.parametrize("game", GAMES)
def test_traces_replay(game: str, godot: Path, record_result: Recorder) -> None:
    folder = folder_of(game)
    file = folder / "all.json"
    if not file.exists():
        pytest.skip(f"{game} was not hunted yet")
    result = read_json(file, Hunted)
    for key, finding in result.findings.items():
        if finding.replays:
            continue
        trace = folder / "all" / key.split(" ")[0]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            tries = pool.map(lambda _, file=trace: shows(file, folder / "bugs"), range(REPLAYS))
            finding.replayed, finding.replays = sum(tries), REPLAYS
        write_json(file, msgspec.to_builtins(result))
    replayed, replays = (
        sum(getattr(each, name) for each in result.findings.values())
        for name in ("replayed", "replays")
    )
    text = f"{replayed} of {replays} replays show the bug"
    record_result(f"hunt: {game}, replays", text, held=replayed == replays)
    assert replayed == replays, text


@pytest.mark.parametrize("game", GAMES)
def test_clean_games(game: str, godot: Path, record_result: Recorder) -> None:
    folder = folder_of(game)
    clean = copy_with([], folder / "clean")
    ready_project(clean, bugs_of(game)[0].scene)
    hunt(game, {"clean": clean}, {"clean": folder / "clean_hunt"}, MINUTES)
    state = read_json(folder / "clean_hunt" / "hunt.json", HuntState)
    alarms = [f"{bug.oracle}: {bug.key}" for bug in state.bugs]
    write_json(folder / "clean.json", {"seconds": state.played_sec, "alarms": alarms})
    result = f"{len(alarms)} alarms in {state.played_sec / 60:.1f} minutes"
    record_result(f"hunt: {game}, clean", "; ".join([result, *alarms]), held=not alarms)
    assert not alarms, result


def test_bars_of_all_games(record_result: Recorder) -> None:
    found, unseen, random, total, half = (0,) * 5
    every: list[Attributed] = []
    alarms, clean_sec = 0, 0.0
    for game in GAMES:
        folder = folder_of(game)
        if not (folder / "clean.json").exists() or not (folder / "random.json").exists():
            pytest.skip(f"{game} was not hunted yet")
        mine, alone = (read_json(folder / f"{name}.json", Hunted) for name in EXPLORERS)
        for bug in bugs_of(game):
            total += 1
            half += bug.set == "unseen"
            found += bug.id in mine.bugs
            unseen += bug.id in mine.bugs and bug.set == "unseen"
            random += bug.id in alone.bugs
        every += mine.findings.values()
        clean = json.loads((folder / "clean.json").read_text())
        alarms, clean_sec = alarms + len(clean["alarms"]), clean_sec + clean["seconds"]
    ratio = statistics.median([each.ratio for each in every])
    replayed, replays = sum(each.replayed for each in every), sum(each.replays for each in every)
    result = (
        f"{found} of {total} planted bugs found, {unseen} of the {half} unseen ones, {random} by "
        f"random actions alone, in at most {MINUTES:g} minutes a game; {replayed} of {replays} "
        f"replays; median trace {100 * ratio:.0f}% of its first length; {alarms} alarms in "
        f"{clean_sec / 60:.0f} minutes of clean games"
    )
    held = found >= 0.9 * total and unseen >= 0.8 * half and not alarms
    held = held and replayed == replays and ratio <= 0.25 and clean_sec >= 360.0 * MINUTES - 10.0
    record_result("hunt: all games", result, held=held)
    assert held, result


def write_page(game: str, bugs: list[Bug], mine: Hunted, random: Hunted) -> None:
    """The table of a game in docs/hunting_results.md."""
    head = "# Planted bugs\n\nWhat `estragon judge hunt` found, bug by bug (`make prove`).\n"
    sections: dict[str, str] = {}
    if PAGE.exists():
        for part in PAGE.read_text().split("\n## ")[1:]:
            sections[part.partition("\n")[0]] = part.partition("\n")[2].strip("\n")
    rows = ["| bug | set | what | found by | random alone |", "|---|---|---|---|---|"]
    for bug in bugs:
        text = bug.description.replace("|", "/").replace("\n", " ")
        rows.append(
            f"| {bug.id} | {bug.set} | {text} | {_told(mine, bug)} | {_told(random, bug)} |"
        )
    sections[game] = "\n" + "\n".join(rows)
    parts = [f"\n## {name}\n{sections[name]}\n" for name in sorted(sections)]
    write_whole(PAGE, (head + "".join(parts)).encode())


def _told(hunted: Hunted, bug: Bug) -> str:
    """Who found a bug first, by which oracle, and when."""
    first = min(hunted.bugs.get(bug.id, []), key=lambda each: each.found_sec, default=None)
    return f"{first.explorer}: {first.oracle}, {first.found_sec:.0f} s" if first else "not found"
