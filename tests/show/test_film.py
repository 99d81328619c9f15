"""A whole film: every stage the same match, in full, with its end."""

from pathlib import Path

import numpy as np
import pytest

from estragon.errors import UserError
from estragon.show.film import FPS, HOLD_SEC, Stage, film_stages, verdict_of
from estragon.show.top_down import SIZE
from estragon.tag.bots import Bot
from estragon.tag.rules import Rules, load_rules
from tests.show.staging import filmed, footage, played, playground, short_rules


def stages(rules: Rules) -> list[Stage]:
    random, chaser, evader = (Bot(name, rules) for name in ("random", "chaser", "evader"))
    return [
        Stage("0%", random, random, "nobody has learned anything"),
        Stage("100%", chaser, evader, "after 12 million steps"),
    ]


@pytest.mark.parametrize("rule_set", ["seek", "transfer"])
def test_a_film_of_two_stages(tmp_path: Path, rule_set: str) -> None:
    rules = short_rules(0.5, rule_set)
    path = tmp_path / "film.mp4"
    told: list[tuple[int, int]] = []
    film_stages(
        stages(rules),
        path,
        rules=rules,
        layout=playground(rules),
        seed=5,
        tell=lambda done, total: told.append((done, total)),
    )
    stream, seconds, frames = footage(path, SIZE)
    scene = round(0.5 * FPS) + 1 + round(HOLD_SEC * FPS)
    assert len(frames) == 2 * scene
    assert "640x720" in stream
    assert f"{FPS} fps" in stream
    assert seconds == pytest.approx(2 * scene / FPS, abs=0.02)
    assert told == [(done + 1, 2 * scene) for done in range(2 * scene)]
    arena, header = np.s_[80:670, 24:616], np.s_[:60]
    assert apart(frames[0][arena], frames[scene][arena]) < 1.0, "both begin alike"
    assert apart(frames[scene - 1][arena], frames[-1][arena]) > 1.0, "and end differently"
    assert apart(frames[0][header], frames[scene][header]) > 1.0


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """By how much two pictures differ, 0 to 255."""
    return float(np.abs(one.astype(np.int64) - other).mean())


def test_an_interrupted_film_is_not_there(tmp_path: Path) -> None:
    rules = short_rules(0.5)

    def stop(done: int, _total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        film_stages(
            stages(rules),
            tmp_path / "film.mp4",
            rules=rules,
            layout=playground(rules),
            seed=5,
            tell=stop,
        )
    assert list(tmp_path.iterdir()) == []


def test_a_film_of_nothing(tmp_path: Path) -> None:
    rules = load_rules()
    with pytest.raises(UserError, match="at least one stage"):
        film_stages([], tmp_path / "f.mp4", rules=rules, layout=playground(rules), seed=0)


@pytest.mark.parametrize(
    ("rule_set", "hider", "seconds", "verdict"),
    [
        ("seek", "evader", 10.0, "tagged after 5.4 s"),
        ("seek", "evader", 2.0, "survived 2 s"),
        ("transfer", "evader", 2.0, "0 tags in 2 s"),
        ("transfer", "random", 3.0, "1 tag in 3 s"),
    ],
)
def test_verdicts(rule_set: str, hider: str, seconds: float, verdict: str) -> None:
    rules = short_rules(seconds, rule_set)
    recording = played(rules, hider=hider)
    assert verdict_of(recording, filmed(rules, recording), rules) == verdict
