"""Godot from Debian's packages, unpacked into a folder of its own with the libraries it needs.

No root is needed and nothing of the system changes: apt works in a root of its own and only
downloads, and the program is started by the loader and the C library that came with it.
"""

import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from estragon.errors import UserError
from estragon.godot.apt_sources import Source, find_debian_archive
from estragon.godot.supervised import SupervisedProcess
from estragon.progress import Progress

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
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
NEEDED_MB = 1000
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

WRAPPER = """\
#!/bin/sh
# Starts the Godot of this folder with the loader and the libraries that came with it.
self=$0
if [ -L "$self" ]; then self=$(readlink -f "$self"); fi
here=$(CDPATH='' cd -- "${{self%/*}}" && pwd -P) || exit 1
prefix=$here/prefix
libs=$prefix/usr/lib/{triplet}
export LIBGL_DRIVERS_PATH="$libs/dri"
export __EGL_VENDOR_LIBRARY_DIRS="$prefix/usr/share/glvnd/egl_vendor.d"
export VK_DRIVER_FILES="$prefix/usr/share/vulkan/icd.d/lvp_icd.json"
export XKB_CONFIG_ROOT="$prefix/usr/share/X11/xkb"
exec "$libs/{loader}" --library-path "$libs:$libs/pulseaudio" --argv0 godot \\
	"$prefix/usr/bin/godot" "$@"
"""


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
    """Download and unpack into `engine`; returns the program's name there.

    `downloads` may hold files of an earlier try: whatever is whole in it is not fetched again.
    """
    archive = find_archive()
    progress.step("package lists")
    configuration = _write_apt_root(downloads, archive)
    _run_apt(["update"], configuration, "the package lists", LISTS_TIMEOUT_SEC)
    packages = _list_packages(configuration)
    _download(packages, configuration, progress)
    files = [_verified(downloads / "archives" / package.file, package) for package in packages]
    _unpack(files, engine / "prefix", progress)
    return _write_wrapper(engine)


def _write_apt_root(root: Path, archive: Source) -> Path:
    for folder in ("state/lists/partial", "cache", "archives/partial", "none/partial", "log"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()
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


def _list_packages(configuration: Path) -> list[Package]:
    """What has to be had, all of it: an empty archive folder hides what is already there."""
    empty = f"Dir::Cache::archives={configuration.parent}/none"
    words = ["-q", "-o", empty, "-y", "--print-uris", "install", *PACKAGES]
    log = _run_apt(words, configuration, "the list of packages", LISTS_TIMEOUT_SEC)
    pattern = r"^'[^']+' (\S+\.deb) (\d+) (SHA256|SHA512):([0-9a-f]+)$"
    found = re.findall(pattern, log.read_text(errors="replace"), re.MULTILINE)
    if not found:
        raise UserError(f"Debian's suite {SUITE} offers no godot here")
    return [Package(file, int(size), kind.lower(), digest) for file, size, kind, digest in found]


def _download(packages: list[Package], configuration: Path, progress: Progress) -> None:
    total = sum(package.size for package in packages)
    progress.step("downloading", f"{total / MEGABYTE:.0f} MB")
    _run_apt(
        ["-y", "install", *PACKAGES],
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


def _write_wrapper(engine: Path) -> str:
    loaders = sorted((engine / "prefix" / "usr" / "lib").glob("*-linux-gnu*/ld-linux*.so.*"))
    if not loaders:
        raise UserError("Debian's packages came without a loader")
    wrapper = engine / "godot"
    wrapper.write_text(WRAPPER.format(triplet=loaders[0].parent.name, loader=loaders[0].name))
    wrapper.chmod(0o755)
    return wrapper.name
