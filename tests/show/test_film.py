"""A whole film: every stage with its card and its match, the same bytes however it was made."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from estragon.show import film, film_renderers
from estragon.show.film import FilmedRun, FilmStage, Made, film_key, find_match, make_film
from estragon.show.film_plan import (
    MatchChoice,
    RoleCurve,
    RunFacts,
    StageFacts,
    chosen_text,
    verdict_of,
)
from estragon.show.film_renderers import Shot, TopDownRenderer, save_frame
from estragon.show.frames import OnProgress, Quality, frame_path
from estragon.support.errors import UserError
from estragon.support.files import locked
from estragon.support.progress import Progress
from estragon.tag.bots import Bot
from tests.show.staging import InlineExecutor, footage, played, playground, short_rules

QUALITY = Quality((192, 108), 10)


@pytest.fixture(autouse=True)
def few_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_fast(*players: Bot, **game: object) -> object:
        return find_match(*players, **game, matches=4)  # type: ignore[arg-type]

    monkeypatch.setattr(film, "find_match", find_fast)
    monkeypatch.setattr(film_renderers, "ProcessPoolExecutor", InlineExecutor)


def filmed(rule_set: str = "seek") -> FilmedRun:
    """Two stages of bots."""
    rules = short_rules(1.0, rule_set)
    stages = [
        StageFacts("0%", 0, None, {"seeker_vs_random": 0.3}, {"seeker": 1000.0}),
        StageFacts("100%", 12_000_000, 61.0, {"seeker_vs_random": 0.9}, {"seeker": 1500.0}),
    ]
    curves = [RoleCurve("seeker", "evader", [0.0, 12e6], [0.3, 0.9])]
    players = [("random", "random"), ("chaser", "evader")]
    return FilmedRun(
        facts=RunFacts("a_run", "self-play", stages, curves),
        stages=[
            FilmStage(facts, Bot(seeker, rules), Bot(hider, rules))
            for facts, (seeker, hider) in zip(stages, players, strict=True)
        ],
        policies="bots",
        rules=rules,
        layouts=[playground(rules)],
    )


def shoot(
    folder: Path,
    output: Path,
    *,
    run: FilmedRun | None = None,
    renderer: TopDownRenderer | None = None,
    **how: bool,
) -> Made:
    return make_film(
        run or filmed(),
        output,
        quality=QUALITY,
        renderer=renderer or TopDownRenderer(),
        folder=folder,
        progress=Progress(),
        **how,
    )


@pytest.mark.slow
def test_a_film_of_two_stages(tmp_path: Path) -> None:
    made = shoot(tmp_path / "run", tmp_path / "film.mp4", run=filmed("transfer"))
    stream, seconds, frames = footage(tmp_path / "film.mp4", QUALITY.size)
    assert stream.startswith("h264")
    assert "yuv420p" in stream
    assert "192x108" in stream
    assert "10 fps" in stream
    assert len(frames) == made.frames
    assert seconds == pytest.approx(made.film_sec, abs=0.02)
    assert made.drawn < made.frames
    brightness = frames.mean(axis=(1, 2, 3))
    assert (brightness > 60).all(), "no black frame"
    jumps = np.abs(np.diff(frames.astype(np.int64), axis=0)).mean(axis=(1, 2, 3))
    assert jumps.max() < 40.0, "no cut, everything fades"
    assert [path.name for path in (tmp_path / "run" / "film").iterdir()] == ["lock"]


class Flaky(TopDownRenderer):
    """Gives up after some frames, once."""

    def __init__(self, after: int) -> None:
        self.after: int | None = after
        self.drawn: list[int] = []

    def draw(self, shots: Sequence[Shot], quality: Quality, on_progress: OnProgress) -> None:
        self.drawn.append(sum(len(shot.missing(quality.size)) for shot in shots))

        def count(done: int, total: int) -> None:
            if done == self.after:
                self.after = None
                raise KeyboardInterrupt
            on_progress(done, total)

        super().draw(shots, quality, count)


@pytest.mark.slow
def test_goes_on_where_it_was_stopped_to_the_same_bytes(tmp_path: Path) -> None:
    shoot(tmp_path / "one", tmp_path / "one.mp4")
    flaky = Flaky(after=15)
    with pytest.raises(KeyboardInterrupt):
        shoot(tmp_path / "two", tmp_path / "two.mp4", renderer=flaky)
    assert not (tmp_path / "two.mp4").exists()
    (work,) = (path for path in (tmp_path / "two" / "film").iterdir() if path.is_dir())
    (work / "scene_0" / "frame_000002.png.part").write_bytes(b"half a frame")
    (work / "scene_0" / "frame_000003.png").write_bytes(b"damaged")
    (work / ".film.mp4.xyz.mp4").write_bytes(b"half a film")
    made = shoot(tmp_path / "two", tmp_path / "two.mp4", renderer=flaky, keep_frames=True)
    assert flaky.drawn[1] <= flaky.drawn[0] - 14, "frames that were drawn are kept"
    assert made.drawn == flaky.drawn[1]
    assert (tmp_path / "one.mp4").read_bytes() == (tmp_path / "two.mp4").read_bytes()
    assert made.work == work, "the same film has the same folder"
    left = [path.name for path in work.rglob("*")]
    assert not [name for name in left if name.startswith(".") or name.endswith(".part")]
    assert len([name for name in left if name.startswith("frame_")]) == flaky.drawn[0]
    again = shoot(tmp_path / "two", tmp_path / "three.mp4", renderer=flaky)
    assert again.drawn == 0
    assert (tmp_path / "one.mp4").read_bytes() == (tmp_path / "three.mp4").read_bytes()
    assert not work.exists()


def test_another_film_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(run: FilmedRun, quality: Quality = QUALITY) -> str:
        return film_key(run, quality, TopDownRenderer())

    first = filmed()
    keys = {key(first)}
    keys.add(key(replace(first, policies="others")))
    keys.add(key(first, Quality((192, 108), 20)))
    keys.add(key(replace(first, facts=RunFacts("b_run", "self-play", [], []))))
    keys.add(key(replace(first, layouts=[])))
    assert key(first) == key(filmed())
    monkeypatch.setattr(film, "__version__", "99")
    keys.add(key(first))
    assert len(keys) == 6


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    output = tmp_path / "film.mp4"
    output.write_bytes(b"mine")
    with pytest.raises(UserError, match=r"film\.mp4 already exists; use --overwrite"):
        shoot(tmp_path / "run", output)
    assert output.read_bytes() == b"mine"
    assert not (tmp_path / "run").exists(), "nothing was begun"


@pytest.mark.slow
def test_a_film_that_appears_meanwhile_is_not_overwritten_either(tmp_path: Path) -> None:
    output = tmp_path / "film.mp4"

    class Meanwhile(TopDownRenderer):
        """Nothing to be seen, and another film while it is drawn."""

        def draw(self, shots: Sequence[Shot], quality: Quality, on_progress: OnProgress) -> None:
            for shot in shots:
                for number in range(len(shot.times)):
                    save_frame(Image.new("RGB", quality.size), frame_path(shot.folder, number))
            output.write_bytes(b"somebody else's")

    other = Meanwhile()
    with pytest.raises(UserError, match="already exists"):
        shoot(tmp_path / "run", output, renderer=other)
    assert output.read_bytes() == b"somebody else's"
    shoot(tmp_path / "run", output, renderer=other, overwrite=True)
    assert output.read_bytes()[4:8] == b"ftyp"


def test_one_at_a_time(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "run" / "film" / "lock", timeout_sec=0.0),
        pytest.raises(UserError, match="which another process holds"),
    ):
        shoot(tmp_path / "run", tmp_path / "film.mp4")


def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film, "BYTES_PER_PIXEL", 1e9)
    with pytest.raises(UserError, match=r"frames need up to .* GB, and only .* GB are free"):
        shoot(tmp_path / "run", tmp_path / "film.mp4")


def test_the_card_says_what_a_match_was_chosen_from() -> None:
    choice = MatchChoice(3, 64, 0.328)
    words = [chosen_text(choice, short_rules(1.0, rules)) for rules in ("seek", "transfer")]
    assert words[0] == "chosen from 64 matches; the seeker wins 33% of them"
    assert words[1] == "chosen from 64 matches; the first seeker wins 33% of them"


@pytest.mark.parametrize(
    ("rule_set", "hider", "seconds", "verdict"),
    [
        ("seek", "random", 10.0, r"tagged after \d\.\d s"),
        ("seek", "evader", 1.0, "survived 1 s"),
        ("transfer", "evader", 1.0, "0 tags in 1 s"),
        ("transfer", "random", 9.0, r"\d tags? in 9 s"),
    ],
)
def test_verdicts(rule_set: str, hider: str, seconds: float, verdict: str) -> None:
    rules = short_rules(seconds, rule_set)
    assert re.fullmatch(verdict, verdict_of(played(rules, hider=hider), rules))
