"""The system's own apt configuration, read to learn which Debian archive this machine uses."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

APT = Path("/etc/apt")
SUITE = re.compile(
    r"^(stable|oldstable|oldoldstable|testing|unstable|sid|"
    r"buster|bullseye|bookworm|trixie|forky|duke)(-updates|-backports)?/?$"
)


class Source(NamedTuple):
    """One archive of binary packages."""

    uri: str
    suites: list[str]
    components: list[str]
    signed_by: str
    """A keyring's path, a fingerprint, a whole key, or nothing."""


def find_debian_archive(apt: Path = APT) -> Source | None:
    """Debian's main archive as this machine reaches it, not the security one; None if none."""
    candidates = [source for source in read_sources(apt) if _is_debian(source)]
    # Others publish for Debian's suites too; Debian's own is signed with its own keyring.
    candidates.sort(key=lambda source: "debian-archive" not in source.signed_by)
    return candidates[0] if candidates else None


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
    if not any(SUITE.match(suite) for suite in source.suites):
        return False
    name = source.uri.rstrip("/").rsplit("/", 1)[-1]
    return "debian-archive" in source.signed_by or name in ("debian", "debian.list")


def _read_lines(text: str) -> Iterator[Source]:
    """`deb [option=value …] uri suite component …`."""
    for line in text.splitlines():
        found = re.match(
            r"^\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)((?:\s+[^\s#]+)*)\s*(?:#.*)?$", line
        )
        if found:
            options = dict(word.split("=", 1) for word in (found[1] or "").split() if "=" in word)
            signed_by = options.get("signed-by", "")
            yield Source(found[2], [found[3]], found[4].split(), signed_by)


def _read_deb822(text: str) -> Iterator[Source]:
    """Stanzas of `Field: value`, further lines of a value indented."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for blank, group in itertools.groupby(lines, key=lambda line: not line.strip()):
        if blank:
            continue
        fields: dict[str, str] = {}
        name = ""
        for line in group:
            if line[0] in " \t":
                fields[name] = f"{fields.get(name, '')}\n{line.strip()}"
            else:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        if "deb" not in fields.get("types", "").split():
            continue
        if fields.get("enabled", "yes").lower() in (
            "no",
            "false",
            "0",
            "off",
            "without",
            "disable",
        ):
            continue
        for uri in fields.get("uris", "").split():
            yield Source(
                uri,
                fields.get("suites", "").split(),
                fields.get("components", "").split(),
                fields.get("signed-by", "").strip(),
            )
