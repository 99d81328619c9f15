"""Planted bugs in copies of six games: which are found, how surely traces replay, how short.

The bugs are in tests/judge/bugs/*.json. A finding belongs to a bug if its trace shows the same
signature in a copy with only that bug, and not in the clean game. `ESTRAGON_HUNT_MINUTES` is the
time of a hunt, 10 minutes by default, `ESTRAGON_HUNT_GAMES` the number of games side by side, 2 by
default. On a busy machine a hunt lasts until it had the processor time of that many minutes on a
quiet one. Every game is resumed where it was interrupted; several may be hunted at the same time
with `-k`. The last proof adds up what all games have shown.
"""

import dataclasses
import json
import os
import resource
import statistics
from pathlib import Path

import msgspec
import pytest

from estragon.cli import main
from estragon.godot.project import ready_project
from estragon.judge.hunt.state import HuntState
from estragon.judge.hunt.traces import Trace, open_trace, replay
from estragon.support.files import read_json, write_json, write_whole
from tests.judge.planted import GAMES, Bug, bugs_of, copy_with
from tests.prove import ROOT, Recorder, run_folder

pytestmark = pytest.mark.prove
MINUTES = float(os.environ.get("ESTRAGON_HUNT_MINUTES", "10"))
SIDE_BY_SIDE = os.environ.get("ESTRAGON_HUNT_GAMES", "2")
QUIET_CORES = 1.4
"""What a hunt of two games uses at least of two cores on a machine that does nothing else."""
REPLAYS = 10
PAGE = ROOT / "docs" / "hunting_results.md"


@dataclasses.dataclass
class Found:
    """What a hunt found: by bug, the explorers whose findings belong to it."""

    bugs: dict[str, list[str]]
    others: list[str]
    """Findings that belong to no bug."""
    ratios: list[float]
    replayed: int = 0
    replays: int = 0


def processor_sec() -> float:
    """Used so far by this process and by all games that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def hunt(game: Path, scene: str, output: Path, *words: str) -> HuntState:
    """Hunt for the time, or until it had the processor time that a quiet machine gives it."""
    file, used_file = output / "hunt.json", output / "processor.json"
    used = float(json.loads(used_file.read_text())) if used_file.exists() else 0.0
    while True:
        played = read_json(file, HuntState).played_sec if file.exists() else 0.0
        left, missing = 60.0 * MINUTES - played, QUIET_CORES * 60.0 * MINUTES - used
        if left <= 1.0 and missing <= 1.0:
            return read_json(file, HuntState)
        share = used / played if played else QUIET_CORES
        minutes = max(left, missing / max(share, 0.1)) / 60.0 if played else MINUTES
        options = ["--scene", scene, "--minutes", f"{max(minutes, 0.05):.2f}"]
        options += ["--output", str(output), "--games", SIDE_BY_SIDE]
        before = processor_sec()
        assert main(["judge", "hunt", str(game), *options, *words]) in (0, 1)
        used += processor_sec() - before
        write_json(used_file, used)


def shows(file: Path, game: Path) -> bool:
    trace = Trace.read(file)
    with open_trace(trace, game) as opened:
        return replay(trace, opened).finding is not None


def attribute(state: HuntState, output: Path, folder: Path, bugs: list[Bug]) -> Found:
    """Which findings belong to which bugs; kept in a file, because it takes long."""
    file = output / "attributed.json"
    if file.exists():
        return msgspec.convert(json.loads(file.read_text()), Found)
    found = Found({bug.id: [] for bug in bugs}, [], [])
    everything = folder / "all"
    for finding in state.bugs:
        trace = output / finding.trace
        owners = []
        if not shows(trace, folder / "clean"):
            clean = folder / "clean"  # which is imported already
            copies = {bug.id: copy_with([bug], folder / bug.id, clean) for bug in bugs}
            owners = [name for name, copy in copies.items() if shows(trace, copy)]
        for owner in owners:
            found.bugs[owner].append(finding.explorer)
        if not owners:
            found.others.append(f"{finding.oracle}: {finding.key}")
        found.ratios.append(finding.length / max(finding.first_length, 1))
        found.replays += REPLAYS
        found.replayed += sum(shows(trace, everything) for _ in range(REPLAYS))
    write_json(file, dataclasses.asdict(found))
    return found


@pytest.mark.parametrize("game", GAMES)
def test_planted_bugs(game: str, godot: Path, record_result: Recorder) -> None:
    bugs = bugs_of(game)
    folder = run_folder("hunt") / game
    clean = copy_with([], folder / "clean")
    ready_project(clean, bugs[0].scene)
    everything = copy_with(bugs, folder / "all", clean)
    words: list[str] = []
    for key, value in bugs[0].arguments.items():
        words += ["--argument", f"{key}={value}"]
    scene = bugs[0].scene
    results: dict[str, Found] = {}
    for name, options in (("all explorers", []), ("random", ["--explorers", "random"])):
        output = folder / name.replace(" ", "_")
        state = hunt(everything, scene, output, *words, *options)
        results[name] = attribute(state, output, folder, bugs)
    alarms = hunt(clean, scene, folder / "clean_hunt", *words).bugs
    all_found, random = results["all explorers"], results["random"]
    count = {name: sum(map(bool, found.bugs.values())) for name, found in results.items()}
    ratio = statistics.median(all_found.ratios) if all_found.ratios else 1.0
    result = (
        f"{count['all explorers']} of {len(bugs)} planted bugs found in {MINUTES:g} minutes, by "
        f"random actions alone {count['random']}; {all_found.replayed} of {all_found.replays} "
        f"replays show the bug; median trace {100 * ratio:.0f}% of its first length; "
        f"{len(alarms)} false alarms in the clean game, {len(all_found.others)} findings of no "
        "planted bug"
    )
    write_page(game, bugs, all_found, random)
    write_json(folder / "alarms.json", len(alarms))
    held = not alarms and all_found.replayed == all_found.replays
    record_result(f"hunt: {game}", result, held=held)
    assert held, result


def test_bars_of_all_games(record_result: Recorder) -> None:
    found, unseen, random, total, replays, replayed, alarms = (0,) * 7
    ratios: list[float] = []
    for game in GAMES:
        folder = run_folder("hunt") / game
        if not (folder / "alarms.json").exists():
            pytest.skip(f"{game} was not hunted yet")
        mine, alone = (
            msgspec.convert(json.loads((folder / name / "attributed.json").read_text()), Found)
            for name in ("all_explorers", "random")
        )
        bugs = bugs_of(game)
        total += len(bugs)
        found += sum(bool(mine.bugs[bug.id]) for bug in bugs)
        unseen += sum(bool(mine.bugs[bug.id]) for bug in bugs if bug.set == "unseen")
        random += sum(map(bool, alone.bugs.values()))
        replays, replayed = replays + mine.replays, replayed + mine.replayed
        alarms += json.loads((folder / "alarms.json").read_text())
        ratios += mine.ratios
    half = sum(bug.set == "unseen" for game in GAMES for bug in bugs_of(game))
    ratio = statistics.median(ratios)
    result = (
        f"{found} of {total} planted bugs found, {unseen} of the {half} unseen ones, {random} by "
        f"random actions alone, in {MINUTES:g} minutes a game; {replayed} of {replays} replays; "
        f"median trace {100 * ratio:.0f}% of its first length; {alarms} false alarms in "
        f"{len(GAMES) * MINUTES:g} minutes of clean games"
    )
    held = found >= 0.9 * total and unseen >= 0.8 * half and not alarms
    held = held and replayed == replays and ratio <= 0.25
    record_result("hunt: all games", result, held=held)
    assert held, result


def write_page(game: str, bugs: list[Bug], everything: Found, random: Found) -> None:
    """The table of a game in docs/hunting_results.md."""
    head = "# Planted bugs\n\nWhat `estragon judge hunt` found, bug by bug (`make prove`).\n"
    sections: dict[str, str] = {}
    if PAGE.exists():
        for part in PAGE.read_text().split("\n## ")[1:]:
            sections[part.partition("\n")[0]] = part.partition("\n")[2].strip("\n")
    rows = ["| bug | set | what | found by | random alone |", "|---|---|---|---|---|"]
    for bug in bugs:
        found = ", ".join(dict.fromkeys(everything.bugs[bug.id])) or "not found"
        alone = "found" if random.bugs[bug.id] else "not found"
        text = bug.description.replace("|", "/").replace("\n", " ")
        rows.append(f"| {bug.id} | {bug.set} | {text} | {found} | {alone} |")
    sections[game] = "\n" + "\n".join(rows)
    parts = [f"\n## {name}\n{sections[name]}\n" for name in sorted(sections)]
    write_whole(PAGE, (head + "".join(parts)).encode())
