"""Installing Godot for real: killed, repeated, two at once; and impossible, with a clear word."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from shutil import which

import pytest

from estragon.godot import debian, install
from estragon.godot.debian import Source
from estragon.godot.display import check_xvfb, has_display
from estragon.godot.install import install_private, install_xvfb
from estragon.support.errors import UserError
from tests.godot.staging import until

NOWHERE = "http://127.0.0.1:9"
INSTALL = [sys.executable, "-m", "estragon", "godot", "install", "--private"]


def begin() -> subprocess.Popen[str]:
    return subprocess.Popen(
        INSTALL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def kill_when(path: Path, pattern: str) -> None:
    """Begin to install, and kill the installer once such a file is there."""
    with begin() as installer:
        until(lambda: any(path.glob(pattern)) or installer.poll() is not None, 300, pattern)
        assert installer.poll() is None, "it was faster than its killer"
        installer.send_signal(signal.SIGKILL)
        installer.communicate(timeout=30)


def apt_at_work(home: Path) -> bool:
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"apt-get" in (words := command.read_bytes()) and str(home).encode() in words:
                return True
        except OSError:
            continue
    return False


@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="kills an apt-get")
def test_in_an_empty_home_killed_repeated_and_two_at_once(empty_home: Path) -> None:
    try:
        debian.find_archive()
    except UserError as error:
        pytest.skip(str(error))
    folder = empty_home / "godot"

    kill_when(folder, "downloads/apt/archives/partial/*")
    until(lambda: not apt_at_work(empty_home), 5, "apt's end with its owner")
    kill_when(folder, "unfinished-*/prefix/usr/lib")
    assert not (folder / "engine").exists()
    assert list(folder.glob("unfinished-*"))

    with begin() as one, begin() as other:
        told = [process.communicate(timeout=500) for process in (one, other)]
        assert [one.returncode, other.returncode] == [0, 0], told
    assert told[0][0] == told[1][0]
    assert any("waiting for another installation" in errors for _, errors in told)
    assert any("unpacking" in errors for _, errors in told)
    copies = ["engine", "lock", *(["xvfb"] if not has_display() and not which("Xvfb") else [])]
    assert sorted(path.name for path in folder.iterdir()) == copies

    began = time.monotonic()
    again = subprocess.run(INSTALL, capture_output=True, text=True, check=True)
    assert time.monotonic() - began < 10  # it took half a minute before
    assert again.stderr == ""
    assert again.stdout == told[0][0]

    elsewhere = empty_home / "a link"
    elsewhere.symlink_to(folder / "engine" / "godot")
    version = subprocess.run([elsewhere, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("4.")


def test_ctrl_c_leaves_nothing_to_trust(empty_home: Path) -> None:
    with begin() as installer:
        until(lambda: any((empty_home / "godot").glob("unfinished-*")), 60, "its folder")
        installer.send_signal(signal.SIGINT)
        _, errors = installer.communicate(timeout=60)
    assert installer.returncode == 130
    assert errors.endswith("estragon: stopped\n")
    assert not list((empty_home / "godot").glob("unfinished-*"))
    assert not (empty_home / "godot" / "engine").exists()


def test_no_apt_and_no_network(
    empty_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as caught:
        install_private(releases=NOWHERE)
    for part in (
        "Godot could not be installed",
        "no apt-get on PATH",
        f"cannot download {NOWHERE}",
        "Connection refused",
        "GODOT_BIN",
    ):
        assert part in str(caught.value)
    assert not list((empty_home / "godot").glob("unfinished-*"))


@pytest.mark.skipif(not Path("/usr/bin/apt-get").exists(), reason="no apt here")
def test_apt_but_no_network(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Source(f"{NOWHERE}/debian", ["stable"], ["main"], "")
    monkeypatch.setattr(debian, "find_debian_archive", lambda: archive)
    with pytest.raises(UserError, match=r"apt could not get the package lists: .*official release"):
        install_private(releases=NOWHERE)


@pytest.mark.parametrize("times", [0, 2])
def test_an_xvfb_that_cannot_be_changed(times: int, tmp_path: Path) -> None:
    server = tmp_path / "Xvfb"
    server.write_bytes(b"\x7fELF" + times * b"/usr/bin\0")
    with pytest.raises(UserError, match=f"names /usr/bin {times} times instead of once"):
        debian._find_xkbcomp_here(server)


@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="for X11")
def test_a_damaged_xvfb_is_replaced(empty_home: Path) -> None:
    program = install_xvfb()
    assert program == empty_home / "godot" / "xvfb" / "Xvfb"
    (program.parent / "prefix" / "usr" / "bin" / "Xvfb").write_bytes(b"damaged")
    assert install_xvfb() == program
    check_xvfb(program)


def test_too_little_space_is_said_before_the_work(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "NEEDED_MB", 10**12)
    with pytest.raises(UserError, match=r"too little space for Godot in .*ESTRAGON_HOME"):
        install_private(releases=NOWHERE)


def test_a_disk_that_fills_up(
    empty_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The downloads go to a device that is always full."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    monkeypatch.setenv("PATH", str(tmp_path))

    def fill(*_: object, **__: object) -> str:
        with Path("/dev/full").open("wb", buffering=0) as full:
            full.write(b"x")
        return ""

    monkeypatch.setattr(install, "install_official", fill)
    with pytest.raises(UserError, match="too little space for Godot"):
        install_private()
    assert not list((empty_home / "godot").glob("unfinished-*"))


def test_a_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ESTRAGON_HOME", os.fspath(tmp_path / "file"))
    with pytest.raises(UserError, match="cannot lock"):
        install_private(releases=NOWHERE)
