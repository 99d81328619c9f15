"""The end of a run: charts, a film of its stages, the exploitability, and a screen about it."""

import json
from functools import partial
from pathlib import Path

import pytest

from estragon.selfplay.config import RoleChoice
from estragon.selfplay.console import print_results
from estragon.selfplay.evaluation import StageEvaluator
from estragon.selfplay.session import Session, start_session
from estragon.show.film import draw_results
from estragon.show.frames import QUALITIES, Quality
from estragon.support.interrupts import StopRequest
from estragon.support.progress import Progress
from tests.selfplay.staging import (
    CONFIG,
    CPU,
    STEPS_PER_UPDATE,
    Onlooker,
    few_charts,
    short_rules,
    task_of,
    the_run,
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few stages, matches and charts, and a small film."""
    monkeypatch.setattr("estragon.selfplay.session.STAGES", (0.0, 1.0))
    monkeypatch.setattr(
        "estragon.selfplay.session.StageEvaluator", partial(StageEvaluator, matches=6)
    )
    monkeypatch.setattr("estragon.selfplay.evaluation.BEST_RESPONSE_MATCHES", 16)
    monkeypatch.setattr("estragon.show.charts.draw.all_charts", few_charts)
    monkeypatch.setitem(QUALITIES, "low", Quality((192, 108), 5))


def finish(session: Session, *, film: bool, probe_steps: int) -> None:
    """The end of a run, as the command calls it."""
    with Progress() as progress:
        responses = session.write_summary(probe_steps, progress)
        charts, filmed = draw_results(session.folder, progress, film=film)
    print_results(session, responses, charts, filmed)


def trained(root: Path, role: RoleChoice, opponent: str, rule_set: str = "seek") -> Session:
    task = task_of(role, opponent, rules=short_rules(rule_set, seconds=0.5))
    steps = 3 * STEPS_PER_UPDATE
    session = start_session(root, task, CONFIG, steps, CPU)
    assert session.run(Onlooker(), StopRequest())
    return session


@pytest.mark.slow
def test_both_roles_with_a_film(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = trained(tmp_path, "both", "league")
    finish(session, film=True, probe_steps=300)
    (film,) = tmp_path.glob("learn_progress-*.mp4")
    assert film.stat().st_size > 5_000
    shown = "".join(capsys.readouterr().out.split())  # however the console folds it
    assert film.name in shown
    assert shown.count("bestresponsetothe") == 2
    assert "evaltag--seeker" in shown
    summary = json.loads((the_run(tmp_path) / "summary.json").read_text())
    assert summary["agent_steps"] == session.trainer.agent_steps
    assert len(summary["probes"]) == 2
    assert set(summary["scores"]) == set(session.scores[-1])


@pytest.mark.parametrize(
    ("role", "opponent", "rule_set"),
    [
        ("hider", "bot:chaser", "seek"),
        pytest.param("seeker", "bot:evader", "seek", marks=pytest.mark.prove),
        pytest.param("both", "league", "transfer", marks=pytest.mark.prove),
    ],
)
def test_one_role_alone_and_roles_that_change(
    role: RoleChoice,
    opponent: str,
    rule_set: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    session = trained(tmp_path, role, opponent, rule_set)
    finish(session, film=role == "hider", probe_steps=0)
    films = len(list(tmp_path.glob("*.mp4")))
    assert films == (1 if role == "hider" else 0), "shown with the opponent it learned with"
    shown = capsys.readouterr().out
    assert shown.count("estragon film --run") == films
    assert "Trained" in shown
    assert ("seeker beats bot:" in shown) == (role != "hider")
    assert ("trained against trained" in shown) == (role == "both")
    assert shown.count("estragon eval tag") == (2 if role == "both" else 1)
    summary = json.loads((the_run(tmp_path) / "summary.json").read_text())
    assert summary["probes"] == []
    assert len(list((tmp_path / "charts").glob("*.png"))) >= 4
