"""Debian's packages: the archive in every form of apt's configuration, and a patched Xvfb."""

from pathlib import Path

import pytest

from estragon.godot.debian import _find_xkbcomp_here, find_debian_archive, read_sources
from estragon.support.errors import UserError

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
DEB822 = f"""\
# written by hand
Types: deb deb-src
URIs: https://one.invalid/debian-security
Suites: bookworm-security
Components: main
Signed-By: {KEYRING}

Types: deb
URIs: https://two.invalid/debian
# between
Suites: bookworm bookworm-updates
Components: main
 contrib
Signed-By: {KEYRING}
"""
INLINE_KEY = """\
Types: deb
URIs: https://own.invalid/debian/
Suites: trixie
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----
"""


def configure(folder: Path, files: dict[str, str]) -> Path:
    (folder / "sources.list.d").mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_deb822(tmp_path: Path) -> None:
    configure(tmp_path, {"sources.list.d/debian.sources": DEB822})
    found = find_debian_archive(tmp_path)
    assert found is not None
    assert found.uri == "https://two.invalid/debian"
    assert found.components == ["main", "contrib"]
    assert found.signed_by == KEYRING


def test_a_key_inside(tmp_path: Path) -> None:
    configure(tmp_path, {"sources.list.d/debian.sources": INLINE_KEY})
    found = find_debian_archive(tmp_path)
    assert found is not None
    assert found.signed_by.splitlines() == [
        "-----BEGIN PGP PUBLIC KEY BLOCK-----",
        ".",
        "abc",
        "-----END PGP PUBLIC KEY BLOCK-----",
    ]


@pytest.mark.parametrize(
    ("line", "signed_by"),
    [
        ("deb http://a.invalid/debian bookworm main", ""),
        ("deb http://a.invalid/debian/ stable contrib main # mine", ""),
        (f"deb [arch=amd64 signed-by={KEYRING}] http://a.invalid/x sid main", KEYRING),
        (f"deb [ signed-by={KEYRING} ] http://a.invalid/debian trixie main", KEYRING),
        ("deb mirror+file:/etc/apt/mirrors/debian.list bookworm main", ""),
    ],
)
def test_one_line(tmp_path: Path, line: str, signed_by: str) -> None:
    security = "deb http://s.invalid/debian-security bookworm-security main"
    configure(tmp_path, {"sources.list": f"# head\n\n{security}\n{line}\n"})
    found = find_debian_archive(tmp_path)
    assert found is not None
    assert found.signed_by == signed_by
    assert ("a.invalid" in found.uri) or found.uri.startswith("mirror+file:")


@pytest.mark.parametrize(
    "line",
    [
        "deb-src http://a.invalid/debian bookworm main",
        "# deb http://a.invalid/debian bookworm main",
        "deb http://a.invalid/ubuntu noble main universe",
        "deb http://a.invalid/linux/debian bookworm stable",
        "deb http://a.invalid/node nodistro main",
        "deb http://a.invalid/debian-security bookworm-security main",
        "deb garbage",
    ],
)
def test_what_is_not_debians_main_archive(tmp_path: Path, line: str) -> None:
    configure(tmp_path, {"sources.list": f"{line}\n"})
    assert find_debian_archive(tmp_path) is None


def test_debians_own_key_comes_first(tmp_path: Path) -> None:
    other = "deb [signed-by=/usr/share/keyrings/other.gpg] http://o.invalid/debian bookworm main\n"
    configure(
        tmp_path,
        {"sources.list.d/a.list": other, "sources.list.d/z.sources": DEB822},
    )
    found = find_debian_archive(tmp_path)
    assert found is not None
    assert found.uri == "https://two.invalid/debian"


def test_disabled_and_unreadable(tmp_path: Path) -> None:
    configure(tmp_path, {"sources.list.d/debian.sources": "Enabled: no\n" + INLINE_KEY})
    (tmp_path / "sources.list").mkdir()
    assert read_sources(tmp_path) == []


@pytest.mark.parametrize("times", [0, 2])
def test_an_xvfb_that_cannot_be_changed(times: int, tmp_path: Path) -> None:
    server = tmp_path / "Xvfb"
    server.write_bytes(b"\x7fELF" + times * b"/usr/bin\0")
    with pytest.raises(UserError, match=f"names /usr/bin {times} times instead of once"):
        _find_xkbcomp_here(server)
