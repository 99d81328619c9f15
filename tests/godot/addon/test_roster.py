"""binary1: agents that come and go, masks, policies, infos, numbers that are none."""

from pathlib import Path

from tests.godot.addon.peer import playing

IDLE = (0.0, 0.0, 0.0)
TRUNCATED, HAS_LAST, HAS_LEFT = 2, 4, 8


def test_an_agent_that_joins_is_introduced_and_acts_from_then_on(
    counter: Path, tmp_path: Path
) -> None:
    with playing(counter, tmp_path, "--join=5", "--policies=1") as peer:
        assert peer.greet("binary1")["agent_policy_names"] == ["policy0"]
        peer.reset()
        rows = peer.step(*IDLE)
        assert [row.id for row in rows] == [0, 1]
        assert [known.policy for known in peer.roster] == ["policy0", "policy1"]
        assert rows[1].state == 0
        rows = peer.step(*IDLE, 0.5, 0.0, 2.0)
        assert [row.obs["zeta"][2] for row in rows] == [0, 2]
        assert rows[0].reward == 4


def test_an_agent_that_leaves_says_so_once_with_what_it_saw_last(
    counter: Path, tmp_path: Path
) -> None:
    with playing(counter, tmp_path, "--agents=2", "--leave=7", "--join=12") as peer:
        peer.greet("binary1")
        peer.reset()
        first = peer.step(*IDLE, *IDLE)
        rows = peer.step(*IDLE, *IDLE)
        assert [row.state for row in rows] == [TRUNCATED | HAS_LAST | HAS_LEFT, 0]
        assert rows[0].last == first[0].obs
        rows = peer.step(*IDLE)
        assert [row.id for row in rows] == [1, 2]  # an id is never used again
        rows = peer.step(*IDLE, *IDLE)
        assert [row.reward for row in rows] == [4, 4]


def test_masks_come_with_every_answer(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--masks=1") as peer:
        assert peer.greet("binary1")["action_mask"] == [{"choice": 3}]
        assert [row.mask for row in peer.reset()] == [{"choice": [1, 0, 0]}]
        assert [row.mask for row in peer.step(*IDLE)] == [{"choice": [1, 1, 0]}]
        assert [row.mask for row in peer.step(*IDLE)] == [{"choice": [1, 0, 0]}]


def test_infos_and_calls(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--infos=1") as peer:
        peer.greet("binary1")
        (row,) = peer.reset(1)
        assert row.info["age"] == 1
        assert "seed" in row.info
        assert peer.step(*IDLE)[0].info == {"age": 5}
        peer.say(type="call", method="tell_age")
        assert peer.hear() == {"type": "call", "returns": [5]}


def test_what_is_no_number_is_told_and_sent_as_0(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--nan=5") as peer:
        peer.greet("binary1")
        peer.reset()
        (row,) = peer.step(*IDLE)
        assert row.obs["zeta"] == [0, 0, 0]
        told = "observation 'zeta', index 1 is nan; sending 0"
        assert any(told in line and "/Counter0/" in line for line in peer.process.lines())


def test_a_trainer_may_ask_again_who_plays(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--agents=3") as peer:
        first = peer.greet("binary1")
        peer.reset()
        peer.say(type="env_info")
        assert peer.hear() == first
        assert [row.reward for row in peer.step(*IDLE * 3)] == [4, 4, 4]
