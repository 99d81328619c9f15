"""Godot and Xvfb from Debian's packages, each unpacked into a folder with the libraries it needs.

No root is needed and nothing of the system changes: apt works in a root of its own and only
downloads, and a program is started by the loader and the C library that came with it.
"""

import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from estragon.godot.apt_sources import Source, find_debian_archive
from estragon.godot.supervised import SupervisedProcess
from estragon.support.errors import UserError
from estragon.support.progress import Progress

SUITE = "forky"
PACKAGES = (
    "godot",
    "libgl1",
    "libgl1-mesa-dri",
    "libegl1",
    "libegl-mesa0",
    "libglx-mesa0",
    "mesa-vulkan-drivers",
)
XVFB_PACKAGES = ("xvfb",)
# The server asks Mesa which formats there are; only its clients draw, with 50 MB more of it.
NOT_FOR_XVFB = ("mesa-libgallium_",)
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
NEEDED_MB, XVFB_NEEDED_MB = 1000, 150
LISTS_TIMEOUT_SEC, DOWNLOAD_TIMEOUT_SEC, UNPACK_TIMEOUT_SEC = 300.0, 3600.0, 600.0
AT_ONCE = 2
MEGABYTE = 1e6

CONFIGURATION = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
#clear Dir::Cache::archives;
Dir::State "{root}/state";
Dir::State::lists "{root}/state/lists";
Dir::State::status "{root}/status";
Dir::Cache "{root}/cache";
Dir::Cache::archives "{root}/archives";
Dir::Log "{root}/log";
Dir::Etc::SourceList "{root}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
APT::Install-Recommends "false";
APT::Get::Download-Only "true";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::PDiffs "false";
Acquire::ForceHash "SHA256";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
Debug::NoLocking "true";
"""

FIND_LIBRARIES = """\
#!/bin/sh
# Starts the program of this name with the loader and the libraries that came with it.
self=$0
if [ -L "$self" ]; then self=$(readlink -f "$self"); fi
here=$(CDPATH='' cd -- "${{self%/*}}" && pwd -P) || exit 1
prefix=$here/prefix
libs=$prefix/usr/lib/{triplet}
export LIBGL_DRIVERS_PATH="$libs/dri"
"""
GODOT_WRAPPER = """\
export __EGL_VENDOR_LIBRARY_DIRS="$prefix/usr/share/glvnd/egl_vendor.d"
export VK_DRIVER_FILES="$prefix/usr/share/vulkan/icd.d/lvp_icd.json"
export XKB_CONFIG_ROOT="$prefix/usr/share/X11/xkb"
exec "$libs/{loader}" --library-path "$libs:$libs/pulseaudio" --argv0 godot \\
	"$prefix/usr/bin/godot" "$@"
"""
# From this folder, where the server finds the other wrapper.
XVFB_WRAPPER = """\
cd "$here" || exit 1
exec "$libs/{loader}" --library-path "$libs" --argv0 Xvfb \\
	"$prefix/usr/bin/Xvfb" -xkbdir "$prefix/usr/share/X11/xkb" "$@"
"""
XKBCOMP_WRAPPER = """\
exec "$libs/{loader}" --library-path "$libs" --argv0 xkbcomp "$prefix/usr/bin/xkbcomp" "$@"
"""
# Where Xvfb looks for xkbcomp, and the folder that it is started in, in as many bytes.
XKBCOMP_FOLDER, WORKING_FOLDER = b"/usr/bin", b"././././"


class Package(NamedTuple):
    """A package to download, as apt names it."""

    file: str
    size: int
    algorithm: str
    digest: str


def find_archive() -> Source:
    """The Debian archive this machine uses; a UserError says why there is none to use."""
    if sys.platform != "linux":
        raise UserError("not a Debian system")
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise UserError(f"no {tool} on PATH")
    archive = find_debian_archive()
    if archive is None:
        raise UserError("apt's configuration names no Debian archive")
    return archive


def install_debian(engine: Path, downloads: Path, progress: Progress) -> str:
    """Download and unpack Godot into `engine`; returns the program's name there.

    `downloads` may hold files of an earlier try: whatever is whole in it is not fetched again.
    """
    _fetch(PACKAGES, (), engine / "prefix", downloads, progress)
    return _write_wrapper(engine, "godot", GODOT_WRAPPER)


def install_debian_xvfb(engine: Path, downloads: Path, progress: Progress) -> str:
    """The same for Xvfb, a display that is not shown anywhere."""
    _fetch(XVFB_PACKAGES, NOT_FOR_XVFB, engine / "prefix", downloads, progress)
    _find_xkbcomp_here(engine / "prefix" / "usr" / "bin" / "Xvfb")
    _write_wrapper(engine, "xkbcomp", XKBCOMP_WRAPPER)
    return _write_wrapper(engine, "Xvfb", XVFB_WRAPPER)


def _fetch(
    names: Sequence[str],
    unneeded: tuple[str, ...],
    prefix: Path,
    downloads: Path,
    progress: Progress,
) -> None:
    """Download packages and what they depend on, verify them, and unpack them into `prefix`."""
    archive = find_archive()
    progress.step("package lists")
    downloads = downloads / "apt"
    configuration = _write_apt_root(downloads, archive)
    _run_apt(["update"], configuration, "the package lists", LISTS_TIMEOUT_SEC)
    packages = _list_packages(names, configuration)
    if without := [package for package in packages if package.file.startswith(unneeded)]:
        _call_installed(without, downloads)
        packages = _list_packages(names, configuration)
    _download(names, packages, configuration, progress)
    files = [_verified(downloads / "archives" / package.file, package) for package in packages]
    _unpack(files, prefix, progress)


def _call_installed(packages: list[Package], root: Path) -> None:
    """Tell apt that these are there already, so that nobody's dependency on them is fetched."""
    stanzas: list[str] = []
    for package in packages:
        name, version, architecture = package.file.removesuffix(".deb").split("_")
        stanzas.append(
            f"Package: {name}\nStatus: hold ok installed\nArchitecture: {architecture}\n"
            f"Multi-Arch: same\nVersion: {urllib.parse.unquote(version)}\n"
            "Maintainer: none\nDescription: left out\n"
        )
    (root / "status").write_text("\n".join(stanzas))


def _write_apt_root(root: Path, archive: Source) -> Path:
    for folder in ("state/lists/partial", "cache", "archives/partial", "none/partial", "log"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "status").write_text("")
    options = "targets=Packages"
    if keys := _keys(root, archive):
        options += f" signed-by={keys}"
    (root / "sources.list").write_text(f"deb [{options}] {archive.uri} {SUITE} main\n")
    configuration = root / "apt.conf"
    text = CONFIGURATION.format(root=root)
    if sys.platform != "win32" and os.geteuid() == 0:
        text += 'APT::Sandbox::User "root";\n'  # apt's own user may not enter this folder
    configuration.write_text(text)
    return configuration


def _keys(root: Path, archive: Source) -> str:
    """What apt verifies the archive with; empty for the keys that the system trusts anyway."""
    if archive.signed_by.startswith("/"):
        return archive.signed_by
    if "BEGIN PGP" in archive.signed_by:
        key = root / "archive.asc"
        # In deb822 a lone dot stands for an empty line.
        lines = ["" if line == "." else line for line in archive.signed_by.splitlines()]
        key.write_text("\n".join(lines) + "\n")
        return str(key)
    return str(KEYRING) if KEYRING.is_file() else ""


def _run_apt(
    words: Sequence[str],
    configuration: Path,
    what: str,
    timeout_sec: float,
    progress: Progress | None = None,
    total_bytes: int = 0,
) -> Path:
    """Run apt-get to its end; returns its log."""
    archives = configuration.parent / "archives"

    def tell() -> None:
        if progress is not None:
            progress.update(_size(archives) / MEGABYTE, total_bytes / MEGABYTE, " MB")

    with SupervisedProcess(
        ["apt-get", "-c", configuration, "-q", *words],
        name="apt-get",
        folder=configuration.parent,
        advice="try again when the network is faster",
        env=os.environ | {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
    ) as apt:
        status = apt.wait(what, timeout_sec, tell)
        if status != 0:
            text = apt.log_file.read_text(errors="replace")
            complaints = re.findall(r"^E: (.*)", text, re.MULTILINE)
            reason = complaints[0] if complaints else " | ".join(apt.tail(2))
            raise UserError(f"apt could not get {what}: {reason}")
        return apt.log_file


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue  # just finished, and moved
    return total


def _list_packages(names: Sequence[str], configuration: Path) -> list[Package]:
    """What has to be had, all of it: an empty archive folder hides what is already there."""
    empty = f"Dir::Cache::archives={configuration.parent}/none"
    words = ["-q", "-o", empty, "-y", "--print-uris", "install", *names]
    log = _run_apt(words, configuration, "the list of packages", LISTS_TIMEOUT_SEC)
    pattern = r"^'[^']+' (\S+\.deb) (\d+) (SHA256|SHA512):([0-9a-f]+)$"
    found = re.findall(pattern, log.read_text(errors="replace"), re.MULTILINE)
    if not found:
        raise UserError(f"Debian's suite {SUITE} offers no {names[0]} here")
    return [Package(file, int(size), kind.lower(), digest) for file, size, kind, digest in found]


def _download(
    names: Sequence[str], packages: list[Package], configuration: Path, progress: Progress
) -> None:
    total = sum(package.size for package in packages)
    progress.step("downloading", f"{total / MEGABYTE:.0f} MB")
    _run_apt(
        ["-y", "install", *names],
        configuration,
        "the packages",
        DOWNLOAD_TIMEOUT_SEC,
        progress,
        total,
    )


def _verified(path: Path, package: Package) -> Path:
    """The downloaded file, if it is what the signed list says; else it is removed."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, package.algorithm).hexdigest()
    if digest != package.digest:
        path.unlink()
        raise UserError(f"{path.name} was damaged on the way; run estragon godot install again")
    return path


def _unpack(files: list[Path], prefix: Path, progress: Progress) -> None:
    prefix.mkdir(parents=True)
    progress.step("unpacking")
    files = sorted(files, key=lambda path: path.stat().st_size, reverse=True)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [pool.submit(_unpack_one, path, prefix) for path in files]
        try:
            for count, job in enumerate(concurrent.futures.as_completed(jobs), 1):
                job.result()
                progress.update(count, len(jobs))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _unpack_one(path: Path, prefix: Path) -> None:
    done = subprocess.run(
        ["dpkg-deb", "-x", path, prefix],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=UNPACK_TIMEOUT_SEC,
    )
    if done.returncode != 0:
        raise UserError(f"cannot unpack {path.name}: {done.stderr.strip()}")


def _write_wrapper(engine: Path, name: str, text: str) -> str:
    loaders = sorted((engine / "prefix" / "usr" / "lib").glob("*-linux-gnu*/ld-linux*.so.*"))
    if not loaders:
        raise UserError("Debian's packages came without a loader")
    wrapper = engine / name
    text = (FIND_LIBRARIES + text).format(triplet=loaders[0].parent.name, loader=loaders[0].name)
    wrapper.write_text(text)
    wrapper.chmod(0o755)
    return name


def _find_xkbcomp_here(server: Path) -> None:
    """Make a private Xvfb look for xkbcomp in its working folder, not in the system's."""
    program = server.read_bytes()
    if (count := program.count(XKBCOMP_FOLDER)) != 1:
        raise UserError(
            f"Debian's Xvfb names {XKBCOMP_FOLDER.decode()} {count} times instead of once, so it "
            "cannot be made to find its own xkbcomp"
        )
    server.write_bytes(program.replace(XKBCOMP_FOLDER, WORKING_FOLDER))
