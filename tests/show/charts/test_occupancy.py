"""Where agents were: every second counted once, on the spot, in matches played now or logged."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from estragon.show.charts.data import read_run
from estragon.show.charts.draw import draw_logged_places, draw_run_places
from estragon.show.charts.occupancy import (
    CELLS_PER_M,
    Occupancy,
    occupancy_of_logs,
    occupancy_of_run,
)
from estragon.show.trajectory import write_trajectory
from estragon.show.trajectory_log import play_in_memory
from estragon.support.errors import UserError
from estragon.tag.bots import Bot
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import load_layout
from estragon.tag.matches import play_matches
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import HIDER, ROLES, SEEKER, Role, load_rules
from tests.show.charts.run_folder import write_rows
from tests.show.staging import played, short_rules

RULES = load_rules()
CELL_M2 = 1.0 / CELLS_PER_M**2
FEW = 12


def run_with_policies(folder: Path, *roles: Role) -> Path:
    """A run that kept these untrained policies, and older ones that nobody may play."""
    folder.mkdir()
    write_rows(folder / "metrics.csv", [{"agent_steps": 1, "duration_sec": 9.0}])
    for role in roles:
        policy = FrozenPolicy.untrained(RULES, role, 0)
        save_policies(folder / "checkpoints" / f"{role}_00010.npz", {role: policy}, RULES)
        (folder / "checkpoints" / f"{role}_00002.npz").write_bytes(b"older and damaged")
    return folder


def seconds_in(places: Occupancy, role: int) -> float:
    """All the seconds of a role in a match."""
    return float(places.seconds(role).sum()) * CELL_M2


def test_an_agent_covers_a_square_as_large_as_itself() -> None:
    arena = replace(RULES.arena, width_m=20.0, depth_m=10.0)
    places = Occupancy(replace(RULES, arena=arena))
    match = played(RULES)
    for _ in range(2):
        places.add(
            match._replace(
                ticks=np.array([0, 60]),
                positions=np.array([[[3.0, 0.5, -2.0], [-9.0, 0.5, 4.0]]] * 2),
                is_seeker=np.array([[True, False]] * 2),
            )
        )
    seconds = places.seconds(SEEKER)
    assert seconds.shape == (10 * CELLS_PER_M, 20 * CELLS_PER_M)
    rows, columns = np.nonzero(seconds)
    assert len(rows) == CELLS_PER_M**2
    assert (rows.mean() + 0.5) / CELLS_PER_M - 5.0 == pytest.approx(-2.0, abs=0.5 / CELLS_PER_M)
    assert (columns.mean() + 0.5) / CELLS_PER_M - 10.0 == pytest.approx(3.0, abs=0.5 / CELLS_PER_M)
    assert seconds.max() == pytest.approx(1.0), "1 s in each match"
    assert not (seconds * places.seconds(HIDER)).any()


def test_every_second_of_every_match_is_counted_for_both_roles() -> None:
    rules = short_rules(2.0)
    places = Occupancy(rules)
    bots = Bot("chaser", rules), Bot("evader", rules)
    layouts = [load_layout("playground", rules)]
    for match in play_in_memory(*bots, 70, rules=rules, layouts=layouts, seed=3):
        places.add(match)
    outcomes = play_matches(*bots, 70, rules=rules, layouts=layouts, seed=3)
    assert places.matches == 70
    lasted = float(outcomes.ticks.mean()) / rules.physics.ticks_per_second
    for role in (SEEKER, HIDER):
        assert seconds_in(places, role) == pytest.approx(lasted)


def test_a_run_plays_its_newest_policies(tmp_path: Path) -> None:
    places, setting = occupancy_of_run(run_with_policies(tmp_path / "run", *ROLES), {}, FEW)
    assert places.matches == FEW
    assert 0.5 < seconds_in(places, SEEKER) <= RULES.episode.time_limit_sec
    assert seconds_in(places, SEEKER) == pytest.approx(seconds_in(places, HIDER))
    assert setting.layout == RULES.layout
    assert setting.boxes == load_layout(RULES.layout, RULES).boxes
    assert setting.players["hider"] == "trained 0.0 million steps"


def test_a_role_that_did_not_learn_is_played_by_a_bot_on_the_layouts_of_the_run(
    tmp_path: Path,
) -> None:
    run = run_with_policies(tmp_path / "run", "hider")
    places, setting = occupancy_of_run(
        run, {"layout": "empty,playground", "rules": "transfer"}, FEW
    )
    assert setting.players["seeker"] == "bot:chaser"
    assert setting.boxes == [], "they would be somebody else's"
    assert setting.layout == "several layouts"
    assert seconds_in(places, SEEKER) == pytest.approx(RULES.episode.time_limit_sec)


def test_the_chart_of_a_run(tmp_path: Path) -> None:
    pictures = draw_run_places([read_run(run_with_policies(tmp_path / "run", *ROLES))])
    (figure,) = pictures.figures.values()
    assert list(pictures.figures) == ["places.png"]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:2] == ["Seeker: trained 0.0 million steps", "Hider: trained 0.0 million steps"]


def test_a_damaged_policy_costs_this_chart_only(tmp_path: Path) -> None:
    run = run_with_policies(tmp_path / "run", *ROLES)
    (run / "checkpoints" / "hider_00099.npz").write_bytes(b"damaged")
    pictures = draw_run_places([read_run(run)])
    assert pictures.figures == {}
    assert "hider_00099.npz is not an Estragon policy" in pictures.missing["places.png"]


def test_logged_matches(tmp_path: Path) -> None:
    rules = short_rules(2.0)
    matches = [played(rules, seed=seed) for seed in (1, 2, 3)]
    for match in matches:
        write_trajectory(match, tmp_path)
    places, setting = occupancy_of_logs(tmp_path)
    assert places.matches == 3
    lasted = float(np.mean([match.seconds[-1] for match in matches]))
    assert seconds_in(places, SEEKER) == pytest.approx(lasted)
    assert setting.layout == "playground"
    assert len(setting.boxes) == len(matches[0].layout.boxes)
    assert list(draw_logged_places(tmp_path).figures) == ["places.png"]


def test_logs_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no logged matches \(\*\.jsonl\) in"):
        occupancy_of_logs(tmp_path)
    (tmp_path / "ep_1.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match=r"ep_1\.jsonl"):
        occupancy_of_logs(tmp_path)
