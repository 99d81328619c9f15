"""Workers are found out by trying and change no bit; torch is given one thread each."""

import pytest

from estragon.selfplay import threads
from estragon.selfplay.config import BLOCKS, RoleChoice
from estragon.selfplay.threads import Threads, choose_threads
from tests.selfplay.staging import CONFIG, task_of


@pytest.mark.parametrize(
    ("cores", "seconds", "expected"),
    [
        (1, {}, Threads(1, 1)),
        (2, {Threads(2, 1): 1.0, Threads(1, 1): 2.0}, Threads(2, 1)),
        (2, {Threads(2, 1): 1.0, Threads(1, 1): 0.95}, Threads(2, 1)),
        (2, {Threads(2, 1): 1.0, Threads(1, 1): 0.5}, Threads(1, 1)),
        (8, {Threads(2, 1): 1.0, Threads(1, 1): 2.0, Threads(2, 4): 0.5}, Threads(2, 1)),
    ],
)
def test_the_fastest_is_chosen_if_it_is_worth_it(
    cores: int, seconds: dict[Threads, float], expected: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "available_cores", lambda: cores)
    monkeypatch.setattr(threads, "_try", lambda _task, _config, tried: seconds[tried])
    assert choose_threads(task_of(), CONFIG) == expected


@pytest.mark.parametrize(("role", "opponent"), [("both", "league"), ("seeker", "bot:evader")])
def test_it_really_tries(role: RoleChoice, opponent: str) -> None:
    chosen = choose_threads(task_of(role, opponent), CONFIG)
    assert 1 <= chosen.workers <= BLOCKS
    assert chosen.torch_threads == 1, "or a seed would mean another run elsewhere"
