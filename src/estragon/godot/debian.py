"""Godot and Xvfb from Debian's packages, each unpacked into a folder with the libraries it needs.

No root is needed and nothing of the system changes: apt works in a root of its own and only
downloads, and a program is started by the loader and the C library that came with it.
"""

import concurrent.futures
import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from estragon.godot.process import SupervisedProcess
from estragon.support.errors import UserError
from estragon.support.progress import Progress

APT = Path("/etc/apt")
SUITES = re.compile(
    r"^(stable|oldstable|oldoldstable|testing|unstable|sid|"
    r"buster|bullseye|bookworm|trixie|forky|duke)(-updates|-backports)?/?$"
)
DISABLED = ("no", "false", "0", "off", "without", "disable")
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
# 50 MB that only drawing needs; the server just asks Mesa for formats.
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


class Source(NamedTuple):
    """One archive of binary packages."""

    uri: str
    suites: list[str]
    components: list[str]
    signed_by: str
    """A keyring's path, a fingerprint, a whole key, or empty."""


class Package(NamedTuple):
    """A package to download, as apt names it."""

    file: str
    size: int
    algorithm: str
    digest: str


def find_archive() -> Source:
    """The Debian archive this machine uses; a UserError says why there is none."""
    if sys.platform != "linux":
        raise UserError("not a Debian system")
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise UserError(f"no {tool} on PATH")
    if (archive := find_debian_archive()) is None:
        raise UserError("apt's configuration names no Debian archive")
    return archive


def find_debian_archive(apt: Path = APT) -> Source | None:
    """Debian's main archive, not the security one, in the system's apt configuration."""
    candidates = [source for source in read_sources(apt) if _is_debian(source)]
    # Others publish for Debian's suites too; Debian's own is signed with its own keyring.
    return min(
        candidates, key=lambda source: "debian-archive" not in source.signed_by, default=None
    )


def read_sources(apt: Path = APT) -> list[Source]:
    """All enabled archives of binary packages, in apt's order."""
    parts = apt / "sources.list.d"
    files = [apt / "sources.list", *sorted(parts.glob("*.list")), *sorted(parts.glob("*.sources"))]
    found: list[Source] = []
    for path in files:
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        found += _read_deb822(text) if path.suffix == ".sources" else _read_lines(text)
    return found


def _is_debian(source: Source) -> bool:
    if "main" not in source.components or "security" in source.uri:
        return False
    if not any(SUITES.match(suite) for suite in source.suites):
        return False
    name = source.uri.rstrip("/").rsplit("/", 1)[-1]
    return "debian-archive" in source.signed_by or name in ("debian", "debian.list")


def _read_lines(text: str) -> Iterator[Source]:
    """`deb [option=value …] uri suite component …`."""
    pattern = r"^\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)((?:\s+[^\s#]+)*)\s*(?:#.*)?$"
    for line in text.splitlines():
        if found := re.match(pattern, line):
            options = dict(word.split("=", 1) for word in (found[1] or "").split() if "=" in word)
            yield Source(found[2], [found[3]], found[4].split(), options.get("signed-by", ""))


def _read_deb822(text: str) -> Iterator[Source]:
    """Stanzas of `Field: value` as in e-mail headers, with comments."""
    text = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    for stanza in re.split(r"\n\s*\n", text.strip()):
        fields = email.message_from_string(stanza)
        if "deb" not in fields.get("Types", "").split():
            continue
        if fields.get("Enabled", "yes").strip().lower() in DISABLED:
            continue
        key = "\n".join(line.strip() for line in fields.get("Signed-By", "").strip().splitlines())
        suites, components = fields.get("Suites", "").split(), fields.get("Components", "").split()
        for uri in fields.get("URIs", "").split():
            yield Source(uri, suites, components, key)


def install_debian(engine: Path, downloads: Path, progress: Progress) -> str:
    """Download and unpack Godot into `engine`; returns the program's name in it.

    Complete files of an earlier attempt in `downloads` are not fetched again.
    """
    _fetch(PACKAGES, (), engine / "prefix", downloads, progress)
    return _write_wrapper(engine, "godot", GODOT_WRAPPER)


def install_debian_xvfb(engine: Path, downloads: Path, progress: Progress) -> str:
    """The same for Xvfb, a virtual display."""
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
    total = sum(package.size for package in packages)
    progress.step("downloading", f"{total / MEGABYTE:.0f} MB")
    words = ["-y", "install", *names]
    _run_apt(words, configuration, "the packages", DOWNLOAD_TIMEOUT_SEC, progress, total)
    files = [_verified(downloads / "archives" / package.file, package) for package in packages]
    _unpack(files, prefix, progress)


def _call_installed(packages: list[Package], root: Path) -> None:
    """Mark packages as installed in apt's eyes, so that dependencies on them are not fetched."""
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
    """The keys that apt verifies the archive with; empty for those the system trusts."""
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
    """All packages that are needed: an empty archive folder hides the ones already downloaded."""
    empty = f"Dir::Cache::archives={configuration.parent}/none"
    words = ["-q", "-o", empty, "-y", "--print-uris", "install", *names]
    log = _run_apt(words, configuration, "the list of packages", LISTS_TIMEOUT_SEC)
    pattern = r"^'[^']+' (\S+\.deb) (\d+) (SHA256|SHA512):([0-9a-f]+)$"
    found = re.findall(pattern, log.read_text(errors="replace"), re.MULTILINE)
    if not found:
        raise UserError(f"Debian's suite {SUITE} offers no {names[0]} here")
    return [Package(file, int(size), kind.lower(), digest) for file, size, kind, digest in found]


def _verified(path: Path, package: Package) -> Path:
    """The downloaded file if its checksum is that of the signed list; else it is removed."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, package.algorithm).hexdigest()
    if digest != package.digest:
        path.unlink()
        raise UserError(
            f"{path.name} was damaged during the download; run estragon godot install again"
        )
    return path


def _unpack(files: list[Path], prefix: Path, progress: Progress) -> None:
    prefix.mkdir(parents=True)
    progress.step("unpacking")
    largest_first = sorted(files, key=lambda path: path.stat().st_size, reverse=True)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [pool.submit(_unpack_one, path, prefix) for path in largest_first]
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
        raise UserError("Debian's packages contain no loader")
    wrapper = engine / name
    text = (FIND_LIBRARIES + text).format(triplet=loaders[0].parent.name, loader=loaders[0].name)
    wrapper.write_text(text)
    wrapper.chmod(0o755)
    return name


def _find_xkbcomp_here(server: Path) -> None:
    """Make a private Xvfb look for xkbcomp in its working folder, not in the system."""
    program = server.read_bytes()
    if (count := program.count(XKBCOMP_FOLDER)) != 1:
        raise UserError(
            f"Debian's Xvfb names {XKBCOMP_FOLDER.decode()} {count} times instead of once, so its "
            "path to xkbcomp cannot be changed"
        )
    server.write_bytes(program.replace(XKBCOMP_FOLDER, WORKING_FOLDER))
