"""Garbage in any input file: one clear line that names the file, and exit code 2."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from estragon.cli import main
from tests.judge.staging import evaluation, segments

GARBAGE = {
    "binary": b"\x00\xff\xfe\x80" * 20,
    "empty": b"",
    "cut": b'{"mean_reward": 1.0, "episodes": [{"agent"',
    "list": b"[]",
    "number": b"12",
    "nothing of it": b"{}",
    "a text for a number": b'{"mean_reward": "high"}',
    "not finite": b'{"mean_reward": NaN}',
    "another format": b'{"mean_reward": 1, "format": "estragon evaluation 9"}',
    "no episodes": b'{"mean_reward": 1, "format": "estragon evaluation 1"}',
    "a wrong episode": b'{"mean_reward": 1, "episodes": [{"agent": "0", "number": 0, "seed": 1}]}',
    "an unknown key of an episode": b'{"mean_reward": 1, "episodes": [{"agent": "0", "number": 0,'
    b' "seed": 1, "reward": 1, "length": 1, "success": null, "metrics": {}, "rewards": 1}]}',
}


def check_refused(words: list[str], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert name in said[0]


@pytest.mark.parametrize("kind", GARBAGE)
def test_evaluations(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    evaluation([1.0, 2.0, 3.0]).write(good)
    bad.write_bytes(GARBAGE[kind])
    regress = ["judge", "regress", "--current", str(good), "--baseline"]
    check_refused([*regress, str(bad)], "bad.json", capsys)
    check_refused([*regress[:3], str(bad), "--baseline", str(good)], "bad.json", capsys)
    report = ["judge", "report", "--output", str(tmp_path / "r.md"), "--metrics"]
    check_refused([*report, str(bad)], "bad.json", capsys)
    for option in ("--baseline", "--verdict", "--validation"):
        check_refused([*report, str(good), option, str(bad)], "bad.json", capsys)
    assert not (tmp_path / "r.md").exists()
    update = [*regress[:3], str(good), "--baseline", str(bad), "--update", "--reason", "x"]
    check_refused(update, "bad.json", capsys)
    assert bad.read_bytes() == GARBAGE[kind]


@pytest.mark.parametrize("name", ["run.metrics.jsonl", "metrics.csv", "events.out.tfevents.1.x"])
@pytest.mark.parametrize("data", [b"\x00\xff\xfe\x80" * 20, b"", b"[1]\n", b"a,b\n1\n"])
def test_metrics(
    name: str, data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "bad"
    run.mkdir()
    (run / name).write_bytes(data)
    check_refused(["judge", "validate", "--experiment", str(run)], "bad", capsys)
    check_refused(["judge", "validate", "--experiment", str(run / name)], "bad", capsys)


def test_damaged_evaluations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes are changed at random: either it is still an evaluation, or it is refused."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    evaluation([1.0, 2.0, 4.0], success=[1, 0, 1], segments=segments(count=4)).write(good)
    data = good.read_bytes()
    random = np.random.default_rng(0)
    codes = Counter[int]()
    for _ in range(120):
        first, length = int(random.integers(len(data))), int(random.integers(1, 12))
        new = random.choice([b"", b"9" * 30, b"-", b"null", b'"x"', b"1e99", b"0", b"[]"])
        bad.write_bytes(data[:first] + bytes(new) + data[first + length :])
        words = ["--current", str(bad), "--baseline", str(good), "--json", str(tmp_path / "v")]
        codes[main(["judge", "regress", *words])] += 1
        said = capsys.readouterr().err
        assert "unexpected" not in said, bad.read_text(errors="replace")
        assert len(said.splitlines()) <= 1
    assert set(codes) <= {0, 1, 2}
    assert codes[2] > 40


def test_missing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, gone = tmp_path / "good.json", tmp_path / "gone.json"
    evaluation([1.0, 2.0, 3.0]).write(good)
    words = ["judge", "regress", "--current", str(good), "--baseline", str(gone)]
    check_refused(words, "gone.json", capsys)
    check_refused(["judge", "report", "--metrics", str(gone)], "gone.json", capsys)
    check_refused(["judge", "validate", "--experiment", str(gone)], "gone.json", capsys)
    (tmp_path / "empty").mkdir()
    check_refused(["judge", "validate", "--experiment", str(tmp_path / "empty")], "empty", capsys)


@pytest.mark.parametrize("suffix", [".zip", ".onnx", ".npz", ".txt"])
def test_models(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / f"bad{suffix}"
    bad.write_bytes(b"\x00\xff" * 40)
    words = ["judge", "evaluate", "--model", str(bad), "--output", str(tmp_path / "e.json")]
    check_refused([*words, "--game", "tag"], "bad", capsys)
    check_refused(words, "bad", capsys)
    missing = ["judge", "evaluate", "--model", str(tmp_path / "gone.zip"), *words[4:]]
    check_refused([*missing, "--game", "tag"], "gone.zip", capsys)
