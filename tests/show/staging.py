"""Short matches for films, and a look into films that were made."""

import re
import subprocess
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from estragon.show.frames import find_ffmpeg
from estragon.show.top_down import Motion, motion_of
from estragon.show.trajectory import Trajectory
from estragon.show.trajectory_log import play_in_memory
from estragon.tag.bots import Bot
from estragon.tag.layout import Layout, load_layout
from estragon.tag.rules import Rules, load_rules
from tests.tag.staging import with_episode

FPS = 40


def short_rules(seconds: float = 1.0, rules: str | None = None) -> Rules:
    """The game's rules, but for matches of this length."""
    return with_episode(load_rules(rules=rules), time_limit_sec=seconds)


def playground(rules: Rules) -> Layout:
    """The game's default boxes."""
    return load_layout("playground", rules)


def played(
    rules: Rules, *, seeker: str = "chaser", hider: str = "evader", seed: int = 5
) -> Trajectory:
    """A match between two bots."""
    bots = Bot(seeker, rules), Bot(hider, rules)
    (match,) = play_in_memory(*bots, 1, rules=rules, layouts=[playground(rules)], seed=seed)
    return match


def filmed(match: Trajectory, fps: int = FPS) -> Motion:
    """The match at a film's rate, to its very end."""
    end = float(match.seconds[-1])
    frames = int(np.ceil(end * fps - 1e-9)) + 1
    return motion_of(match, np.minimum(np.arange(frames) / fps, end).tolist())


class InlineExecutor:
    """Stands in for a pool of processes, and works in this one: starting others takes long."""

    def __init__(self, _count: int, _context: object, _start: object, arguments: Any) -> None:
        prepare, given = arguments
        prepare(*given)

    def submit(self, work: Callable[[Any], Any], item: object) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_result(work(item))
        return future

    def shutdown(self, *, cancel_futures: bool) -> None:
        assert cancel_futures


class Footage(NamedTuple):
    """What a film turns out to be when it is played."""

    stream: str
    """ffmpeg's words on it: codec, pixels, size, rate."""
    seconds: float
    frames: np.ndarray
    """(frames, height, width, 3) uint8."""


def footage(path: Path, size: tuple[int, int]) -> Footage:
    """Play a film with ffmpeg, every frame of it."""
    words = ["-hide_banner", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1"]
    shown = subprocess.run([find_ffmpeg(), *words], capture_output=True, check=True, timeout=60)
    about = shown.stderr.decode()
    (stream,) = re.findall(r"Stream #0:0.*?Video: (.*) \(default\)", about.split("Output")[0])
    ((minutes, seconds),) = re.findall(r"Duration: 00:(\d\d):([\d.]+)", about)
    frames = np.frombuffer(shown.stdout, np.uint8).reshape(-1, size[1], size[0], 3)
    return Footage(stream, int(minutes) * 60 + float(seconds), frames)
