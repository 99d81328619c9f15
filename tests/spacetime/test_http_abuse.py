"""The HTTP API against clients that send anything: right statuses, no crash, no effect."""

import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from estragon.godot.project import import_project
from estragon.godot.user_data import user_folder
from estragon.support import paths
from tests.prove import ROOT, Recorder, run_folder
from tests.spacetime.http_game import LOCOMOTION, TOKEN, Answer, Client, Game, serving

BEARER = f"Authorization: Bearer {TOKEN}\r\n"
SCENES = (
    "res://scenes/Main.tscn",
    "res://scenes/features/../Main.tscn",
    "res://../../etc/passwd.tscn",
    "res://scenes/features/%2e%2e/Main.tscn",
    "file:///etc/passwd",
    "C:\\Windows\\a.tscn",
    "res://scenes/features/" + "a" * 300 + ".tscn",
    "res://scenes/features/vr_locomotion_test.tscn/../../Main.tscn",
    "\u202eres://scenes/Main.tscn",
)
ENDPOINTS = (
    "/rl/step",
    "/rl/reset",
    "/rl/action",
    "/rl/wire",
    "/scene",
    "/scene/reload",
    "/scenes",
)


SCHEMATHESIS = "schemathesis==4.32.5"
SCHEMATHESIS_SEC = 1800.0
SCHEMATHESIS_SETTINGS = """
# How many agents there are, and what they do, depends on the scene: no schema can say that.
[[operations]]
include-path-regex = "^/rl/(step|reset|action|wire)$"
checks.positive_data_acceptance.enabled = false
"""
MOST_SLOW = 20
"""Slow requests at the same time."""


@pytest.fixture(scope="module")
def game(godot: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Game]:
    project = import_project(paths.godot_project(), godot=godot)
    with serving(godot, project, tmp_path_factory.mktemp("abuse") / "game.log") as game:
        yield game
        assert game.process.poll() is None
        assert TOKEN not in game.log.read_text(errors="replace")
        assert "SCRIPT ERROR" not in game.log.read_text(errors="replace")


def request(head: str, body: bytes = b"", *, length: bool = True) -> bytes:
    """A request with the token; `head` is its first line and headers."""
    size = f"Content-Length: {len(body)}\r\n" if length else ""
    return f"{head}\r\nHost: x\r\n{BEARER}{size}\r\n".encode("latin-1") + body


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\r\n\r\nGET /health HTTP/1.1\r\n\r\n", 200),
        (b"GET /health HTTP/1.1\r\nHost: a\r\nX: b: c\r\n\r\n", 200),
        (b"GET /health HTTP/1.0\r\n\r\n", 200),
        (b"HEAD /health HTTP/1.1\r\n\r\n", 401),
        (b"get /health HTTP/1.1\r\n\r\n", 401),
        (b"GET /health\r\n\r\n", 400),
        (b"GET  /health HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/2.0\r\n\r\n", 400),
        (b"GET health HTTP/1.1\r\n\r\n", 400),
        (b"GET http://127.0.0.1/health HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nbroken\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nA : b\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nA: \x01\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nA: \x00\r\n\r\n", 400),
        (b"GET /\x00health HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"POST /rl/step HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /rl/step HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n", 400),
        (b"POST /rl/step HTTP/1.1\r\nContent-Length: \r\n\r\n", 400),
        (b"POST /rl/step HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n", 400),
        (b"POST /rl/step HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /rl/step HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n", 413),
        (b"POST /rl/step HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
        (b"GET /health HTTP/1.1\r\nA: " + b"a" * 20_000 + b"\r\n\r\n", 413),
        (b"GET /" + b"a" * 20_000, 413),
        (request("GET /scenes?dir=%00 HTTP/1.1"), 400),
        (request("GET /scenes?dir=..%2f..%2fetc HTTP/1.1"), 400),
        (request("GET /rl%2fstate HTTP/1.1"), 404),
        (request("BREW /scene HTTP/1.1"), 405),
        (request("POST /rl/wire HTTP/1.1"), 400),
        (request("POST /rl/wire HTTP/1.1", b"A\0\0\0"), 400),
        (request("POST /rl/wire HTTP/1.1", b"A\0\0\0\xff\xff\xff\xff" + b"\0" * 12), 400),
        (request("POST /rl/wire HTTP/1.1", b"A\0\0\0\1\0\0\0" + b"\xff" * 12), 400),
        (request("POST /rl/wire HTTP/1.1", b"{}"), 400),
        (request("POST /rl/wire HTTP/1.1", b'{"type":"action","action":[]}'), 400),
        (request("POST /rl/wire HTTP/1.1", b'{"type":"call","method":7}'), 400),
    ],
)
def test_malformed_requests(game: Game, data: bytes, status: int) -> None:
    with game.client() as client:
        before = client.get("/rl/state")
        with game.client() as abuser:
            answer = abuser.raw(data)
        assert answer is not None
        assert answer.status == status, answer
        if status >= 400 and answer.body:
            assert set(answer.json) <= {"error", "message", "details"}
        assert client.get("/rl/state") == before


def test_a_large_body_is_refused_while_it_is_sent(game: Game) -> None:
    with game.client() as abuser:
        abuser.send(request("POST /rl/step HTTP/1.1\r\nContent-Length: 3000000", length=False))
        abuser.send(b"x" * 3_000_000)
        answer = abuser.receive()
    assert answer is not None
    assert (answer.status, answer.json["error"]) == (413, "payload_too_large")


def test_the_largest_body_is_read(game: Game) -> None:
    with game.client() as client:
        body = b'{"action":[0,0,0],"x":"' + b"a" * (2**20 - 25) + b'"}'
        assert len(body) == 2**20
        assert client.request("POST", "/rl/step", body).status == 200


def test_requests_in_pieces_and_ahead(game: Game) -> None:
    with game.client() as client:
        client.post("/rl/reset", {"seed": 1})
        message = client.message("POST", "/rl/step", {"action": [0, 1, 0]})
        for byte in message:
            client.send(bytes([byte]))
        answer = client.receive()
        assert answer is not None
        assert answer.status == 200
        client.send(message * 20 + client.message("GET", "/rl/state"))
        answers = [client.receive() for _ in range(21)]
        assert all(each is not None and each.status == 200 for each in answers)
        assert answers[-1] is not None
        assert answers[-1].json["step"] == 21


@pytest.mark.parametrize(
    ("length", "status"),
    [
        ("0021", 200),
        ("21 ", 200),
        ("", 400),
        ("-1", 400),
        ("2x1", 400),
        ("21\r\nContent-Length: 21", 400),
        ("1048577", 413),
        ("9" * 16, 413),
    ],
)
def test_heads_that_differ_in_their_length(game: Game, length: str, status: int) -> None:
    """The game reads nothing but the length of such a head."""
    with game.client() as client:
        for body in (b'{"action": [0, 0, 0]}', b'{"action": [0, 0.5, 0]}', b'{"action": [0, 0]}'):
            client.send(with_length(str(len(body)), body))
            answer = client.receive()
            assert answer is not None
            assert answer.status == (400 if body.endswith(b"[0, 0]}") else 200)
        answer = client.raw(with_length(length, b'{"action": [0, 0, 0]}'))
        assert answer is not None
        assert answer.status == status, answer


def with_length(length: str, body: bytes) -> bytes:
    head = f"POST /rl/step HTTP/1.1\r\n{BEARER}Content-Length: {length}\r\n\r\n"
    return head.encode() + body


def test_a_body_may_wait_for_continue(game: Game) -> None:
    with game.client() as client:
        body = b'{"action": [0, 0, 0]}'
        head = f"POST /rl/step HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {len(body)}"
        answer = client.raw(request(head, length=False))
        assert answer is not None
        assert answer.status == 100
        answer = client.raw(body)
        assert answer is not None
        assert answer.status == 200


def test_connection_close(game: Game) -> None:
    with game.client() as client:
        answer = client.raw(request("GET /health HTTP/1.1\r\nConnection: close"))
        assert answer is not None
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert client.receive() is None


@pytest.mark.slow
def test_a_slow_request_times_out_and_holds_nobody_up(game: Game) -> None:
    with game.client() as slow, game.client() as client:
        slow.send(b"POST /rl/step HTTP/1.1\r\nContent-Le")
        start = time.monotonic()
        while time.monotonic() < start + 8.0:
            assert client.request("GET", "/rl/state").status == 200
            slow.send(b"n")
            time.sleep(0.2)
        answer = slow.receive()
        assert answer is not None
        assert answer.status == 408
        assert slow.receive() is None


def test_a_client_that_reads_nothing_holds_nobody_up(game: Game) -> None:
    with game.client() as deaf, game.client() as client:
        deaf.send(deaf.message("GET", "/rl/info") * 200)
        assert client.request("GET", "/rl/state").status == 200


def test_many_connections(game: Game) -> None:
    clients = [game.client(None) for _ in range(150)]
    try:
        with game.client() as client:
            assert client.request("GET", "/rl/state").status == 200
    finally:
        for each in clients:
            each.close()


def test_clients_that_leave_early(game: Game) -> None:
    for cut in range(0, 120, 7):
        with game.client() as client:
            client.send(client.message("POST", "/rl/step", {"action": [0, 0, 0]})[:cut])
    for _ in range(20):
        with game.client() as client:
            client.send(client.message("POST", "/rl/step", {"action": [0, 0, 0]}))
    with game.client() as client:
        assert client.request("GET", "/rl/state").status == 200


def _mutate(chance: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(changed) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            changed[at : at + chance.randint(1, 9)] = b""
        elif kind == 1:
            changed[at:at] = chance.randbytes(chance.randint(1, 9))
        elif kind == 2:
            changed[at:at] = chance.choice([b"\r\n", b"\0", b"{", b"%2e", b"9" * 20, b"\xff", b" "])
        else:
            del changed[at:]
    return bytes(changed)


def _wrong_token(chance: random.Random, client: Client) -> tuple[bytes, set[int]]:
    del client
    token = _mutate(chance, TOKEN.encode()).translate(None, b"\r\n\0").decode("latin-1")
    token = token if token.strip() != TOKEN else "x"
    path = chance.choice(ENDPOINTS)
    body = b'{"scene_path": "%b", "action": [0, 1, 0]}' % LOCOMOTION.encode()
    head = f"POST {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode("latin-1") + body, {401, 400}


def _scene(chance: random.Random, client: Client) -> tuple[bytes, set[int]]:
    path = chance.choice(SCENES)
    path = path if chance.random() < 0.5 else path[: chance.randrange(len(path))]
    path = "res://scenes/other.tscn" if path == LOCOMOTION else path
    method = chance.choice(["POST", "PUT"])
    return client.message(method, "/scene", {"scene_path": path}), {400, 403, 429}


def _traversal(chance: random.Random, client: Client) -> tuple[bytes, set[int]]:
    path = "/" + "".join(chance.choices(["..", "/", "%2e", "etc", "rl", "\\", "%2f"], k=6))
    return client.message("GET", path), {404}


def _action(chance: random.Random, client: Client) -> tuple[bytes, set[int]]:
    value = chance.choice([None, "x", [], {}, 1e308, [1, 2], {"type": "continuous", "rotate": 9}])
    return client.message("POST", "/rl/step", {"action": value}), {400}


def _oversized(chance: random.Random, client: Client) -> tuple[bytes, set[int]]:
    del client
    size = 2**20 + chance.randint(1, 2**40)
    return request(f"POST /rl/step HTTP/1.1\r\nContent-Length: {size}", length=False), {413}


def _garbage(chance: random.Random, client: Client) -> tuple[bytes, set[int]]:
    good = client.message("GET", "/rl/state")
    lines = _mutate(chance, good).replace(b"\r\n\r\n", b"") + b"\r\n\r\n"
    # Whatever it became, it does nothing: the path and method that it started with only read.
    return lines, {200, 400, 401, 404, 405, 408, 413}


def _slow(chance: random.Random, client: Client) -> tuple[bytes, set[int]]:
    """The beginning of a request; the rest never comes."""
    whole = client.message("POST", "/rl/step", {"action": [0, 1, 0]})
    return whole[: chance.randrange(1, len(whole))], {408}


ABUSES: tuple[Callable[[random.Random, Client], tuple[bytes, set[int]]], ...] = (
    _wrong_token,
    _slow,
    _scene,
    _traversal,
    _action,
    _oversized,
    _garbage,
)


def abuse(game: Game, count: int, seed: int, *, waits: bool = False) -> Counter[int]:
    """Send so many requests; the statuses of their answers. The game must not change.

    Slow requests get no answer before they are given up; with `waits`, the last ones do.
    """
    chance = random.Random(seed)
    statuses: Counter[int] = Counter()
    with game.client() as witness:
        witness.post("/rl/reset", {"seed": 1})
        before = witness.get("/rl/state"), witness.get("/rl/observation")
        abuser = game.client()
        slow: list[Client] = []
        for number in range(count):
            kind = chance.choice(ABUSES)
            data, allowed = kind(chance, abuser)
            if kind is _slow:
                slow.append(game.client(None))
                slow[-1].send(data)
                if len(slow) >= MOST_SLOW:
                    slow.pop(chance.randrange(MOST_SLOW)).close()
                continue
            answer: Answer | None = None
            for _attempt in range(2):
                if kind is _garbage:  # may leave half a request behind
                    abuser.close()
                    abuser = game.client()
                    abuser.shut_after(data)
                else:
                    abuser.send(data)
                if (answer := abuser.receive()) is not None:
                    break
                abuser.close()
                abuser = game.client()
                if kind is _garbage:
                    break
            if answer is not None:
                assert answer.status in allowed, (seed, number, data[:300], answer)
                assert TOKEN not in str(answer)
                statuses[answer.status] += 1
            if answer is None or answer.headers.get("connection") == "close":
                abuser.close()
                abuser = game.client()
        abuser.close()
        for each in slow:
            if waits:
                answer = each.receive()
                assert answer is not None
                assert answer.status == 408, answer
                statuses[408] += 1
            each.close()
        assert (witness.get("/rl/state"), witness.get("/rl/observation")) == before
        assert witness.get("/rl/info")["scene"] == LOCOMOTION
    return statuses


def test_random_abuse(game: Game) -> None:
    statuses = abuse(game, 600, seed=1)
    assert {400, 401, 403, 404, 413} <= set(statuses)


@pytest.mark.prove
def test_twenty_thousand_abuses(game: Game, record_result: Recorder) -> None:
    start = time.monotonic()
    statuses = abuse(game, 20_000, seed=7, waits=True)
    seconds = time.monotonic() - start
    folders = [game.log.parent, paths.godot_project(), user_folder()]
    files = [each for folder in folders for each in folder.rglob("*") if each.is_file()]
    assert not [each for each in files if TOKEN.encode() in each.read_bytes()]
    told = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
    unanswered = 20_000 - statuses.total()
    record_result(
        "HTTP API under abuse",
        f"20,000 requests (malformed, oversized, slow, wrong token, traversal, scenes off the "
        f"whitelist) in {seconds:.0f} s, no effect, the token in none of {len(files)} files of the "
        f"game: {told}; {unanswered} incomplete ones unanswered",
    )


@pytest.mark.prove
def test_schemathesis(game: Game, tmp_path: Path, record_result: Recorder) -> None:
    venv = run_folder("schemathesis")
    program = venv / "bin" / "schemathesis"
    if not program.exists():
        _run([sys.executable, "-m", "venv", "--clear", str(venv)])
        _run([str(venv / "bin" / "python"), "-m", "pip", "install", "-q", SCHEMATHESIS])
    (tmp_path / "schemathesis.toml").write_text(SCHEMATHESIS_SETTINGS)
    words = [str(program), "--config-file", str(tmp_path / "schemathesis.toml"), "run"]
    words += [str(ROOT / "docs" / "openapi.yaml"), "--url", f"http://127.0.0.1:{game.port}"]
    words += ["--header", f"Authorization: Bearer {TOKEN}", "--seed", "1"]
    words += ["--phases", "examples,coverage,fuzzing", "--max-examples", "50"]
    said = _run(words, cwd=tmp_path)
    assert "Operations:       16 selected / 16 total" in said
    (cases,) = re.findall(r"(\d+) generated", said)
    record_result("HTTP API against its OpenAPI file", f"{SCHEMATHESIS}: {cases} cases, no failure")


def _run(words: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, check=False, timeout=SCHEMATHESIS_SEC
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return done.stdout
