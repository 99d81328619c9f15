"""Nobody but the user's own browser gets anything from the controller: page, files or socket."""

import asyncio
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import websockets

from tests.controller.staging import Server, serving

pytest.importorskip("nicegui")
SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("guard")) as running:
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
