"""The server: binary games, many at once, and actors that make mistakes."""

import contextlib
import socket
import time
from collections.abc import Sequence

import numpy as np
import pytest

from estragon.live.batcher import Actors
from estragon.live.protocol import ActionRequest, Decision, Hello
from estragon.live.server import LiveServer
from estragon.support.errors import UserError
from tests.live.staging import (
    PATIENCE_SEC,
    SIZE,
    Game,
    SpyBrain,
    frame,
    results,
    seen,
    serving,
    shake_hands,
    wait_until,
    websocket_frame,
)

ACT = {"type": "act", "obs": [1.0, 2.0, 3.0, 4.0, 5.0]}


def test_a_binary_game() -> None:
    spy = SpyBrain()
    with serving(lambda _: spy) as server:
        with Game(server.port) as game:
            answer = game.hello()
            assert (answer["type"], answer["encoding"]) == ("hello", "binary")
            for number in range(50):
                brought = results(ended=[number % 3]) if number else None
                seq, actions = game.decide(frame(100 + number, seen(3, number), brought))
                assert seq == 100 + number
                np.testing.assert_array_equal(actions, seen(3, number)[:, :, :3])
            assert server.clients == 1
        wait_until(lambda: spy.left == [1])
        assert server.clients == 0
        assert server.counts.decisions == 50 * 6
        assert server.counts.messages == 51
        assert server.counts.connections == 1
    assert list(spy.joined) == [1]
    assert spy.joined[1].arenas == 3
    outcomes = [decision.outcome for asked in spy.decided for _, decision in asked]
    assert outcomes[0] is None
    assert [int(outcome.ends.argmax()) for outcome in outcomes[1:] if outcome] == [
        number % 3 for number in range(1, 50)
    ]


def test_zeros_for_agents_that_the_server_does_not_play() -> None:
    with serving() as server, Game(server.port) as game:
        game.hello(controlled=[False, True])
        _, actions = game.decide(frame(0, seen(3, 9)))
        assert not actions[:, 0].any()
        assert actions[:, 1].all(axis=1).tolist() == [False, True, True]  # arena 0 is a zero


def test_a_binary_game_may_speak_json_too() -> None:
    with serving() as server, Game(server.port) as game:
        game.hello()
        assert game.ask(ACT)["action"] == [1.0, 2.0, 3.0]
        assert game.decide(frame(0))[0] == 0


def test_games_that_ask_together_are_answered_together() -> None:
    spy = SpyBrain()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving(lambda _: spy))
        games = [stack.enter_context(Game(server.port)) for _ in range(4)]
        for arenas, game in enumerate(games, start=1):
            game.hello(arenas=arenas)
        spy.free.clear()
        games[0].socket.send(frame(0, seen(1, 50.0)))
        assert spy.busy.wait(PATIENCE_SEC)
        for number, game in enumerate(games[1:], start=2):
            game.socket.send(frame(0, seen(number, number)))
        games[0].socket.ping()  # after this has left, so have the frames
        time.sleep(0.2)
        spy.free.set()
        for number, game in enumerate(games[1:], start=2):
            _, actions = game.actions()
            np.testing.assert_array_equal(actions, seen(number, number)[:, :, :3])
    assert [client for client, _ in spy.decided[0]] == [1]
    assert sorted(client for client, _ in spy.decided[1]) == [2, 3, 4]
    assert len(spy.decided) == 2


def test_agents_of_all_clients_are_asked_together() -> None:
    spy = SpyBrain()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving(lambda _: spy))
        games = [stack.enter_context(Game(server.port)) for _ in range(3)]
        for game in games:
            game.ask(ACT)
        spy.busy.clear()
        spy.free.clear()
        games[0].say(ACT)
        assert spy.busy.wait(PATIENCE_SEC)
        for number, game in enumerate(games[1:]):
            own = {name: [number, 1.0, 2.0, 3.0, 4.0] for name in ("Agent1", "Agent2")}
            game.say({"type": "act_batch", "obs": own})
        time.sleep(0.2)
        spy.free.set()
        for number, game in enumerate(games[1:]):
            assert game.hear()["actions"]["Agent2"] == [number, 1.0, 2.0]
    assert len(spy.asked) == 5
    assert len(spy.asked[4]) == 4


class Clumsy(SpyBrain):
    """Stumbles over observations that end with a 13."""

    def decide(self, asked: Sequence[tuple[int, Decision]]) -> list[np.ndarray]:
        if any((decision.observations[..., -1] == 13.0).any() for _, decision in asked):
            raise ZeroDivisionError("thirteen")
        return super().decide(asked)

    def act(self, asks: Sequence[ActionRequest]) -> np.ndarray:
        if any(ask.observation[-1] == 13.0 for ask in asks):
            return np.full((len(asks), 3), np.nan, dtype=np.float32)
        return super().act(asks)

    def join(self, client: int, hello: Hello) -> None:
        if hello.seed == 13:
            raise UserError("not with this seed")
        super().join(client, hello)

    def leave(self, client: int) -> None:
        if client == 13:
            raise ZeroDivisionError("left")
        super().leave(client)


@pytest.mark.parametrize("binary", [True, False])
def test_a_mistake_of_the_brain_ends_one_connection(
    binary: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(Clumsy) as server, Game(server.port) as other, Game(server.port) as game:
        other.hello()
        if binary:
            game.hello()
            game.socket.send(frame(0, seen(3, 13.0)))
        else:
            game.say({"type": "act", "obs": [1.0, 2.0, 3.0, 4.0, 13.0]})
        assert game.closed()[0] == 1011
        assert other.decide(frame(0))[0] == 0
    (record,) = [record for record in caplog.records if record.exc_info]
    assert "client 2" in record.getMessage()


def test_a_mistake_is_nobody_elses_who_asked_together() -> None:
    actor = Clumsy()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving(lambda _: actor))
        first, good, bad = (stack.enter_context(Game(server.port)) for _ in range(3))
        for game in (first, good, bad):
            game.hello()
        actor.free.clear()
        first.socket.send(frame(0))
        assert actor.busy.wait(PATIENCE_SEC)
        good.socket.send(frame(0, seen(3, 5.0)))
        bad.socket.send(frame(0, seen(3, 13.0)))
        time.sleep(0.2)
        actor.free.set()
        assert first.actions()[0] == 0
        np.testing.assert_array_equal(good.actions()[1], seen(3, 5.0)[:, :, :3])
        assert bad.closed()[0] == 1011


def test_a_brain_may_refuse_a_game() -> None:
    with serving(Clumsy) as server, Game(server.port) as game:
        assert "not with this seed" in game.hello(seed=13)["error"]
        assert game.closed()[0] == 1008


def test_clients_have_numbers_of_their_own_and_leave() -> None:
    spy = SpyBrain()
    with serving(lambda _: spy) as server:
        for _ in range(1, 4):
            with Game(server.port) as game:
                game.hello()
                game.decide(frame(0))
            wait_until(lambda: spy.left[-1:] == [spy.decided[-1][0][0]])
    assert [client for asked in spy.decided for client, _ in asked] == [1, 2, 3]
    assert spy.left == [1, 2, 3]


def test_a_game_that_vanishes_leaves_too() -> None:
    spy = SpyBrain()
    with serving(lambda _: spy) as server:
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SEC) as raw:
            shake_hands(raw)
            raw.sendall(websocket_frame(b'{"type":"act","obs":[1,2,3,4,5]}'))
            assert spy.busy.wait(PATIENCE_SEC)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        wait_until(lambda: spy.left == [1])


def test_games_are_told_when_the_server_stops() -> None:
    with serving() as server, Game(server.port) as game:
        assert game.ask(ACT)["type"] == "action"
        server.stop()
        assert game.closed()[0] == 1001
        server.stop()
        server.check()


def test_it_stops_though_nobody_answers() -> None:
    with (
        serving(open_sec=1.0, close_sec=0.5) as server,
        socket.create_connection(("127.0.0.1", server.port), PATIENCE_SEC) as deaf,
        socket.create_connection(("127.0.0.1", server.port), PATIENCE_SEC),
    ):
        shake_hands(deaf)
        wait_until(lambda: server.clients == 1)
        start = time.monotonic()
        server.stop()
        assert time.monotonic() - start < 5.0


def test_a_taken_port() -> None:
    with serving() as server:
        second = LiveServer(Actors(SpyBrain), port=server.port)
        with pytest.raises(UserError, match=f"port {server.port} is in use.*--port"):
            second.start()
        second.stop()


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none(port: int) -> None:
    with pytest.raises(UserError, match="--port"), LiveServer(Actors(SpyBrain), port=port):
        pass


def test_sizes_are_limited() -> None:
    actors = Actors(SpyBrain, most=2)
    assert actors.actor_for(SIZE) is actors.actor_for(SIZE)
    actors.actor_for(7)
    with pytest.raises(UserError, match="2 others"):
        actors.actor_for(8)
