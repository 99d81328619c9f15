"""cross_play.json: read, and refused where its parts do not fit together."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.show.charts.cross_play import read_cross_play
from estragon.support.errors import UserError
from tests.show.charts.run_folder import STAGES, played_stages


def saved(folder: Path, **changes: Any) -> Path:
    path = folder / "cross_play.json"
    path.write_text(json.dumps(played_stages(np.random.default_rng(0)) | changes))
    return path


def test_reads_what_a_run_writes(tmp_path: Path) -> None:
    loaded = read_cross_play(saved(tmp_path, note="more keys may come"))
    assert [stage.name for stage in loaded.stages] == list(STAGES)
    assert loaded.stages[-1].agent_steps == 12_000_000
    assert loaded.episodes == 256
    assert len(loaded.elo.hider) == len(STAGES)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"stages": []}, "stages: Expected"),
        ({"seeker_win_rate": [[0.5]]}, "seeker_win_rate: expected 6 rows of 6"),
        ({"seeker_win_rate": [[1.5]]}, "seeker_win_rate.*<= 1.0"),
        ({"elo": {"seeker": [1.0], "hider": [1.0]}}, "elo: expected 6 ratings a role"),
        ({"elo": None}, "elo"),
    ],
)
def test_damage_is_named(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=rf"cross_play\.json: {complaint}"):
        read_cross_play(saved(tmp_path, **changes))
