"""The verb: which run it takes, and what it says."""

from pathlib import Path

import pytest
import tyro

from estragon.errors import UserError
from estragon.show.commands import DrawCharts, latest_run
from tests.show.run_folder import write_rows


def tiny_run(folder: Path) -> Path:
    """A run of two updates that has lengths of episodes and nothing else."""
    folder.mkdir(parents=True)
    rows = [{"agent_steps": 1000 * n, "duration_sec": 9.0 - n} for n in (1, 2)]
    write_rows(folder / "metrics.csv", rows)
    return folder


def test_lists_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--run", str(tiny_run(tmp_path / "run")), "--output", str(tmp_path / "charts")]
    tyro.cli(DrawCharts, args=words).run()
    assert capsys.readouterr().out == f"wrote {tmp_path / 'charts' / 'length.png'}\n"
    assert (tmp_path / "charts" / "length.png").is_file()


def test_takes_the_newest_run_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"no run given and no trainer.logs.latest_run\.txt"):
        DrawCharts().run()
    tiny_run(Path("trainer", "logs", "run_7"))
    Path("trainer", "logs", "latest_run.txt").write_text("run_7\n")
    DrawCharts().run()
    assert [path.name for path in Path("charts").iterdir()] == ["length.png"]


def test_the_pointer_may_be_absolute_and_must_be_one_line(tmp_path: Path) -> None:
    pointer = tmp_path / "latest_run.txt"
    pointer.write_text(f"{tmp_path / 'elsewhere'}\n")
    assert latest_run(pointer) == tmp_path / "elsewhere"
    pointer.write_text("run_1")
    assert latest_run(pointer) == tmp_path / "run_1"
    for text in ("", "\n", "run_1\nrun_2\n"):
        pointer.write_text(text)
        with pytest.raises(UserError, match="expected one line"):
            latest_run(pointer)
