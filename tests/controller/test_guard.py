"""Nobody but the user's own browser gets anything from the controller: page, files or socket."""

import asyncio
import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import websockets

from estragon.controller.project import Workspace
from tests.controller.staging import Server, serving

pytest.importorskip("nicegui")
SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


FOREIGN = """
import http.client, json, os, sys
port, pid, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]

def ask(cookie):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/", headers={"Cookie": cookie} if cookie else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()

def refused(action, *arguments):
    try:
        return str(action(*arguments))
    except PermissionError:
        return "refused"

print(json.dumps({
    "user": os.getuid(),
    "page": ask(""),
    "guess": ask("estragon_token=" + "0" * 64),
    "refused": [
        refused(os.listdir, folder), refused(open, folder + "/token"),
        refused(open, folder + "/open.html"), refused(open, folder + "/settings.json"),
        refused(open, f"/proc/{pid}/environ", "rb"), refused(os.kill, int(pid), 0),
    ],
    "cmdline": open(f"/proc/{pid}/cmdline").read(),
}))
"""
"""What another user of this machine can try."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """In a folder that others can enter, so that only its own modes protect it."""
    with tempfile.TemporaryDirectory(prefix="estragon-") as folder:
        Path(folder).chmod(0o755)
        with serving(Path(folder)) as running:
            yield running


def static_file() -> str:
    import nicegui

    return f"/_nicegui/{nicegui.__version__}/static/nicegui.css"


def test_only_the_token_opens_page_and_files(server: Server) -> None:
    for path in ("/", static_file(), "/_nicegui_ws/socket.io/?EIO=4&transport=polling"):
        assert server.ask(path) == 401
        assert server.ask(path, {"Cookie": "estragon_token=" + "0" * 64}) == 401
        assert server.ask(path, {"Cookie": "estragon_token="}) == 401
        assert server.ask(path, server.cookie) == 200


def test_the_token_is_in_a_file_of_the_user_alone(server: Server) -> None:
    for name in ("token", "open.html"):
        mode = (server.home / "controller" / name).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE((server.home / "controller").stat().st_mode) == 0o700
    words = Path(f"/proc/{server.process.pid}/cmdline")
    if words.exists():
        assert server.token.encode() not in words.read_bytes()
    assert server.token not in (server.home.parent / "server.log").read_text()


def test_another_user_of_the_machine_gets_nothing(server: Server) -> None:
    nobody, python = 65534, shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if not hasattr(os, "getuid") or os.getuid() != 0 or python is None:
        pytest.skip("only root can become another user")
    words = [str(server.port), str(server.process.pid), str(server.home / "controller")]
    done = subprocess.run(
        [python, "-IS", "-c", FOREIGN, *words],
        user=nobody, group=nobody, extra_groups=[], cwd="/", env={}, capture_output=True,
        text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["user"] == nobody
    assert [status for status, _ in (found["page"], found["guess"])] == [401, 401]
    assert found["refused"] == ["refused"] * 6
    assert server.token not in done.stdout


def test_every_start_has_a_new_token(server: Server, tmp_path: Path) -> None:
    """What somebody learned who listened on the port of an earlier one is worth nothing."""
    workspace = Workspace(tmp_path, tmp_path / "home")
    tokens = {workspace.new_token() for _ in range(3)} | {server.token}
    assert len(tokens) == 4
    assert all(len(token) == 64 for token in tokens)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.1:80"])
def test_another_host_is_refused(server: Server, host: str) -> None:
    assert server.ask("/", server.cookie | {"Host": host}) == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://["])
def test_another_origin_is_refused(server: Server, origin: str) -> None:
    assert server.ask("/", server.cookie | {"Origin": origin}) == 403
    assert server.ask("/", server.cookie | {"Sec-Fetch-Site": "cross-site"}) == 403
    assert server.ask("/", server.cookie | {"Origin": server.url}) == 200


@pytest.mark.parametrize("headers", ["none", "wrong token", "foreign origin", "foreign host"])
def test_the_socket_is_guarded_too(server: Server, headers: str) -> None:
    sent = {
        "none": {},
        "wrong token": {"Cookie": "estragon_token=" + "f" * 64, "Origin": server.url},
        "foreign origin": server.cookie | {"Origin": "http://evil.example"},
        "foreign host": server.cookie,
    }[headers]

    async def connect(headers: dict[str, str], name: str = "127.0.0.1") -> None:
        async with websockets.connect(
            f"ws://{name}:{server.port}{SOCKET}",
            host="127.0.0.1",
            port=server.port,
            additional_headers=headers,
            proxy=None,
        ) as socket:
            assert str(await socket.recv()).startswith("0{")

    with pytest.raises(websockets.InvalidStatus, match="403"):
        asyncio.run(connect(sent, "evil.example" if headers == "foreign host" else "127.0.0.1"))
    asyncio.run(connect(server.cookie | {"Origin": server.url}))


def test_it_listens_on_this_machine_only(server: Server) -> None:
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("Linux tells who listens where")
    listening = [line.split()[1] for line in table.read_text().splitlines() if " 0A " in line]
    assert [each for each in listening if each.endswith(f":{server.port:04X}")] == [
        f"0100007F:{server.port:04X}"
    ]


def test_a_path_leads_to_no_file(server: Server) -> None:
    for path in ("/../../etc/passwd", "/_nicegui/x/../../../etc/passwd", "/%2e%2e/etc/passwd"):
        assert server.ask(path, server.cookie) == 404
