"""What a person sees of a run where there is no terminal: a line now and then."""

from pathlib import Path

import pytest

from estragon.selfplay import console as module
from estragon.selfplay.console import Display, strength_table
from estragon.selfplay.session import start_session
from estragon.support.interrupts import StopRequest
from tests.selfplay.staging import CONFIG, CPU, STEPS_PER_UPDATE, short_rules, task_of


@pytest.mark.parametrize("role", ["both", "seeker"])
def test_stages_and_progress_are_told(
    role: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("estragon.selfplay.session.STAGES", (0.0, 1.0))
    monkeypatch.setattr(module, "PLAIN_EVERY_SEC", 0.0)
    rules = short_rules(seconds=0.5)
    opponent = "league" if role == "both" else "bot:evader"
    task = task_of(role, opponent, rules=rules)  # type: ignore[arg-type]
    steps = 3 * (STEPS_PER_UPDATE if role == "both" else 256)
    session = start_session(tmp_path, task, CONFIG, steps, CPU)
    session.evaluator.matches = 4
    with Display(session) as display:
        assert session.run(display, StopRequest())
        display.say("[bold]as it is[/bold]")
        screen = display._screen()
    told = capsys.readouterr().err.splitlines()
    assert sum(line.startswith("at 0% (0.0 M steps): seeker beats random") for line in told) == 1
    assert sum(line.startswith("at 100%") for line in told) == 1
    assert sum("agent-steps/s" in line and "left" in line for line in told) == 3
    assert told[-1] == "[bold]as it is[/bold]"
    assert screen.renderables
    table = strength_table(session)
    assert table.row_count == 2
    shown = [str(column.header) for column in table.columns]
    assert any("hider" in header for header in shown) == (role == "both")
    assert "seeker Elo" in shown
