"""A Chromium for tests: the system's, or Debian's headless shell, unpacked without root."""

import os
import shutil
import subprocess
from pathlib import Path

from estragon.godot import debian, find
from estragon.godot.install import _Copy, _install_once
from estragon.support.errors import UserError
from estragon.support.progress import Progress

FLAGS = [
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage",
]
"""WebGL without a graphics card, in containers too."""
INTERPRETER = b"/lib64/ld-linux-x86-64.so.2\0"
# Its processes start each other as /proc/self/exe: that must be the program, not a loader. So the
# program names a loader in the folder that it is started in, in as many bytes.
WRAPPER = """\
export LD_LIBRARY_PATH="$libs:$libs/pulseaudio"
export FONTCONFIG_SYSROOT="$prefix"
cd "$here" || exit 1
exec ./chromium-headless-shell "$@"
"""


def find_chromium() -> Path:
    """The Chromium to test with; a private copy is installed where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if program := shutil.which(name):
            return Path(program)
    return _install_once(
        _Copy(
            "Chromium",
            find.private_folder() / "chromium",
            900,
            [(f"Debian {debian.SUITE}", _install)],
            _check,
            "check the network, or install chromium with the system's packages",
        )
    )


def _install(engine: Path, downloads: Path, progress: Progress) -> str:
    prefix = engine / "prefix"
    packages = ("chromium-headless-shell", "fonts-dejavu-core")
    debian._fetch(packages, debian.NOT_FOR_XVFB, prefix, downloads, progress)
    for path in (prefix / "usr" / "lib" / "chromium").iterdir():
        (engine / path.name).symlink_to(path.relative_to(engine))
    program = engine / "chromium-headless-shell"
    data = program.read_bytes()
    if data.count(INTERPRETER) != 1:
        raise UserError("Debian's Chromium has an unknown loader")
    program.unlink()
    program.write_bytes(data.replace(INTERPRETER, b"ld.so".ljust(len(INTERPRETER), b"\0")))
    program.chmod(0o755)
    loader = next((prefix / "usr" / "lib").glob("*-linux-gnu*/ld-linux*.so.*"))
    (engine / "ld.so").symlink_to(loader.relative_to(engine))
    return debian._write_wrapper(engine, "chromium", WRAPPER)


def _check(program: Path) -> None:
    words = [str(program), *FLAGS, "--headless", "--dump-dom", "data:text/html,<p>it works</p>"]
    done = subprocess.run(words, capture_output=True, timeout=120, check=False, env=os.environ)
    if b"it works" not in done.stdout:
        raise UserError(f"{program} does not start: {done.stderr[-300:]!r}")
