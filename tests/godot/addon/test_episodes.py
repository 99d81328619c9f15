"""binary1 against the counter game: every reward, end, last observation and seed is known."""

from pathlib import Path

from tests.godot.addon.peer import Peer, Row, playing

TERMINATED, TRUNCATED, HAS_LAST = 1, 2, 4
REPEAT = 4
IDLE = (0.0, 0.0, 0.0)


def seed_of(game: int, agent: int, episode: int) -> int:
    """The formula of the protocol's page."""
    mask = 0xFFFFFFFF
    x = (game * 0x9E3779B1 + agent * 0x85EBCA6B + episode * 0xC2B2AE35) & mask
    x = ((x ^ x >> 16) * 0x7FEB352D) & mask
    x = ((x ^ x >> 15) * 0x846CA68B) & mask
    return x ^ x >> 16


def count(row: Row) -> float:
    return row.obs["zeta"][1]


def last_count(row: Row) -> float:
    assert row.last is not None
    return row.last["zeta"][1]


def seen_seed(obs: dict[str, list[list[float]]]) -> int:
    low, high = obs["alpha"][1]
    return int(low) | int(high) << 16


def start(peer: Peer, seed: int | None = None) -> Row:
    peer.greet("binary1")
    return peer.reset(seed)[0]


def test_an_action_is_in_force_from_the_first_tick_on(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path) as peer:
        assert count(start(peer)) == 0
        (row,) = peer.step(0.5, -0.25, 2)
        assert row.obs["zeta"] == [0, REPEAT, 2]
        assert row.obs["alpha"][0] == [0.5, -0.25]
        assert (row.reward, row.state) == (REPEAT, 0)


def test_action_repeat_from_the_command_line(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--action_repeat=7") as peer:
        start(peer)
        assert [count(peer.step(*IDLE)[0]) for _ in range(3)] == [7, 14, 21]


def test_an_end_amid_a_window_has_its_own_reward_and_last_observation(
    counter: Path, tmp_path: Path
) -> None:
    with playing(counter, tmp_path, "--lifetime=10", "--env_seed=5") as peer:
        first = start(peer)
        assert first.info["seed"] == seed_of(5, 0, 0) == seen_seed(first.obs)
        rows = [peer.step(*IDLE)[0] for _ in range(6)]
        assert [row.reward for row in rows] == [4, 4, 12, 6, 14, 4]
        assert [row.state for row in rows] == [0, 0, 5, 0, 5, 0]
        assert [count(row) for row in rows] == [4, 8, 2, 6, 0, 4]
        for episode, row in enumerate([rows[2], rows[4]]):
            assert row.last is not None
            assert last_count(row) == 10
            assert seen_seed(row.last) == seed_of(5, 0, episode)
            assert row.info["seed"] == seed_of(5, 0, episode + 1) == seen_seed(row.obs)


def test_a_game_that_asks_for_a_reset_gets_one_tick_for_it(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--lifetime=8", "--asks=1", "--agents=1") as peer:
        start(peer)
        rows = [peer.step(*IDLE)[0] for _ in range(4)]
        # The second window ends with the episode: one more tick, then the new one is seen.
        assert [(row.reward, row.state, count(row)) for row in rows] == [
            (4, 0, 4),
            (14, 5, 0),
            (4, 0, 4),
            (14, 5, 0),
        ]


def test_a_reset_that_is_also_called_done_is_no_end_of_its_own(
    counter: Path, tmp_path: Path
) -> None:
    with playing(counter, tmp_path, "--lifetime=10", "--asks=1", "--says_done=1") as peer:
        assert start(peer).state == 0
        rows = [peer.step(*IDLE)[0] for _ in range(5)]
        assert [(row.reward, row.state, count(row)) for row in rows] == [
            (4, 0, 4),
            (4, 0, 8),
            (12, 5, 1),
            (5, 0, 5),
            (4, 0, 9),
        ]


def test_a_time_limit_truncates(counter: Path, tmp_path: Path) -> None:
    for says_done in ("0", "1"):
        with playing(counter, tmp_path, "--limit=5", f"--says_done={says_done}") as peer:
            start(peer)
            rows = [peer.step(*IDLE)[0] for _ in range(4)]
            # The tick of a reset is the first step: the fifth after it is over the limit.
            assert [(row.reward, row.state, count(row)) for row in rows] == [
                (4, 0, 4),
                (1, TRUNCATED | HAS_LAST, 2),
                (2 + 3, TRUNCATED | HAS_LAST, 0),
                (4, 0, 4),
            ], says_done
            assert [last_count(row) for row in rows[1:3]] == [5, 5]


def test_a_reset_starts_over_and_nothing_before_it_counts(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--says_done=1", "--env_seed=3") as peer:
        start(peer)
        peer.step(*IDLE)
        (row,) = peer.reset()
        assert (row.reward, row.state, count(row), row.last) == (0, 0, 0, None)
        assert row.info["seed"] == seed_of(3, 0, 1) == seen_seed(row.obs)
        (row,) = peer.step(*IDLE)
        assert (row.reward, row.state, count(row)) == (4, 0, 4)


def test_a_reset_with_a_seed_begins_at_the_first_episode(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--agents=2") as peer:
        start(peer)
        peer.step(*IDLE, *IDLE)
        for seed in (7, 7, 2**31):
            rows = peer.reset(seed)
            assert [row.info["seed"] for row in rows] == [seed_of(seed, i, 0) for i in range(2)]
            peer.step(*IDLE, *IDLE)
            rows = peer.reset()
            assert [row.info["seed"] for row in rows] == [seed_of(seed, i, 1) for i in range(2)]
            peer.step(*IDLE, *IDLE)


def test_several_short_episodes_in_a_window_are_one_end(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--lifetime=3", "--action_repeat=8", "--env_seed=2") as peer:
        start(peer)
        (row,) = peer.step(*IDLE)
        # It ended in ticks 3 and 6; the second episode had no action and counts for nothing.
        assert (row.reward, row.state, count(row)) == (13, 5, 2)
        assert row.info["seed"] == seed_of(2, 0, 1)
        (row,) = peer.step(*IDLE)
        assert (row.reward, row.state) == (2 + 1 + 10, 5)
        assert row.info["seed"] == seed_of(2, 0, 2)


def test_the_same_seed_is_the_same_game(counter: Path, tmp_path: Path) -> None:
    seen = []
    for _ in range(2):
        with playing(counter, tmp_path, "--env_seed=11") as peer:
            peer.greet("binary1")
            peer.say(type="call", method="roll")
            rolls = [peer.hear()["returns"]]
            for seed in (4, 4):
                peer.reset(seed)
                peer.say(type="call", method="roll")
                rolls.append(peer.hear()["returns"])
        assert rolls[1] == rolls[2] != rolls[0]
        seen.append(rolls)
    assert seen[0] == seen[1]
