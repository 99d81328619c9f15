"""The steps that reproduce a bug, in words and as Markdown, ready for a bug tracker."""

import itertools
import shlex
from collections.abc import Sequence

from estragon.judge.hunt.traces import Trace

MOST_STEPS = 24
SMALL = 0.15
"""A deflection below this is not worth a word."""
WHAT = {
    "script error": "The script fails",
    "error": "The game reports an error",
    "warning": "The game warns",
    "crash": "The game crashes",
    "hang": "The game hangs",
    "bad message": "The game sends an invalid message",
    "nan": "A number is NaN or infinite",
    "out of bounds": "A body leaves the level",
    "endless fall": "A body falls out of the level",
    "stuck": "The player is stuck",
    "overlap": "A body is inside another one",
    "speed": "A body becomes much too fast",
    "leak": "The game leaks",
    "reset": "A reset leaves something behind",
    "lock": "The game is locked",
    "clock": "A clock stands still",
    "sibling": "A thing does not act as others of its kind",
    "frame time": "A frame takes too long",
    "range": "An observation leaves its range",
    "reward": "A reward is inconsistent",
    "counter": "A counter is wrong",
    "endless episode": "The episode never ends",
    "expectation": "An expectation does not hold",
    "log pattern": "The log has a forbidden line",
    "signature": "The bug that was looked for is reproduced",
}


def title(trace: Trace) -> str:
    """One line."""
    return f"{WHAT.get(trace.finding.oracle, trace.finding.oracle)}: {trace.finding.key}"


def steps(trace: Trace) -> list[str]:
    """What to do, in order."""
    where = f" at {_place(trace.places[0])}" if trace.places and trace.places[0] else ""
    found = [f"Start {trace.scene or 'the main scene'} with seed {trace.rollout.seed}{where}."]
    if trace.before:
        played = sum(len(each.actions) for each in trace.before)
        found.append(
            f"Play {len(trace.before)} rollouts first, {played} actions in all (`before` in the "
            "trace), without restarting the game."
        )
    runs = _runs(trace)
    for start, end in runs[:MOST_STEPS]:
        found.append(_describe(trace, start, end))
    if len(runs) > MOST_STEPS:
        found.append(f"… {len(runs) - MOST_STEPS} more inputs; the trace has all of them.")
    return found


def to_markdown(trace: Trace, name: str) -> str:
    """A bug report."""
    command = f"estragon judge replay {shlex.quote(name)} --game PATH"
    place = f" at {_place(trace.finding.place)}" if trace.finding.place else ""
    lines = [
        f"# {title(trace)}",
        f"**Seen{place}:** {trace.finding.text}",
        "## Steps",
        "\n".join(f"{number}. {text}" for number, text in enumerate(steps(trace), 1)),
        f"Replay it with `{command}`; add `--window` to watch.",
        f"Found by {trace.explorer}: {trace.length} actions, first {trace.first_length}.",
        f"Build {trace.digest}.",
    ]
    return "\n\n".join(lines) + "\n"


def _runs(trace: Trace) -> list[tuple[int, int]]:
    """First and last + 1 of actions that are the same."""
    actions = trace.rollout.actions
    starts = [
        index
        for index, action in enumerate(actions)
        if index == 0
        or _told(action) != _told(actions[index - 1])
        or str(index + 1) in trace.clicks
    ]
    return list(itertools.pairwise([*starts, len(actions)]))


def _told(action: Sequence[float]) -> list[float]:
    return [round(value, 1) if abs(value) >= SMALL else 0.0 for value in action]


def _describe(trace: Trace, start: int, end: int) -> str:
    action = _told(trace.rollout.actions[start])
    clicked = trace.clicks.get(str(start + 1))
    parts = []
    for name, value in zip(trace.columns, action, strict=True):
        if name == "click":
            parts += [f"click “{clicked}”"] if clicked else []
        elif value == 1.0:
            parts.append(f"hold {name}")
        elif value > 1.0:
            parts.append(f"choose {value:g} of {name}")
        elif value:
            parts.append(f"hold {name} at {value:g}")
    what = " and ".join(parts) if parts else "wait"
    count = end - start
    time = f"{count * trace.step_sec:.1f} s, " if trace.step_sec else ""
    text = f"{what[0].upper()}{what[1:]} for {time}{count} action{'s' if count > 1 else ''}"
    if end < len(trace.places) and trace.places[start] and trace.places[end]:
        way = _way(trace.places[start], trace.places[end])
        text += f"; the body goes {way}" if way else "; the body stays"
        text += f" to {_place(trace.places[end])}" if way else ""
    return text + "."


def _way(start: Sequence[float], end: Sequence[float]) -> str:
    moves = [stop - begin for begin, stop in zip(start, end, strict=True)]
    largest = max(abs(move) for move in moves)
    if largest < 1e-3:
        return ""
    signed = [
        f"{'+' if move > 0 else '-'}{axis}"
        for axis, move in zip("xyz", moves, strict=False)
        if abs(move) > 0.4 * largest
    ]
    return " ".join(signed)


def _place(place: Sequence[float]) -> str:
    return f"({', '.join(f'{value:.4g}' for value in place)})"
