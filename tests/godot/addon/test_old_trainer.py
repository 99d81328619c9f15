"""A trainer of version 0.7 against the counter game, in JSON."""

from pathlib import Path

from tests.godot.addon.peer import playing

ACTION = {"push": [0.25, -1.0], "choice": 1}


def test_it_is_spoken_to_as_version_0_7_has_it(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--agents=2", "--policies=1") as peer:
        info = peer.greet()
        spaces = {
            "zeta": {"size": [3], "space": "box"},
            "alpha": {"size": [2, 2], "space": "box"},
        }
        actions = {
            "push": {"size": 2, "action_type": "continuous"},
            "choice": {"size": 3, "action_type": "discrete"},
        }
        assert info == {
            "type": "env_info",
            "observation_space": [spaces] * 2,
            "action_space": [actions] * 2,
            "n_agents": 2,
            "agent_policy_names": ["policy0", "policy1"],
        }
        # The order of the keys is what trainers go by.
        assert [list(each) for each in info["observation_space"]] == [["zeta", "alpha"]] * 2
        assert [list(each) for each in info["action_space"]] == [["push", "choice"]] * 2
        answer = peer.old_reset()
        assert list(answer) == ["type", "obs", "info"]
        assert answer["info"] == [{}, {}]
        assert [obs["zeta"] for obs in answer["obs"]] == [[0, 0, -1], [1, 0, -1]]
        answer = peer.old_step([ACTION, ACTION | {"choice": 2}])
        assert list(answer) == ["type", "obs", "reward", "done", "info"]
        assert [obs["zeta"] for obs in answer["obs"]] == [[0, 4, 1], [1, 4, 2]]
        assert answer["obs"][0]["alpha"][0] == [0.25, -1.0]
        assert (answer["reward"], answer["done"]) == ([4, 4], [False, False])
        peer.say(type="close")
        assert peer.process.wait("its end", 10.0) == 0


def test_done_is_what_the_game_says(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--lifetime=10", "--limit=15") as peer:
        peer.greet()
        peer.old_reset()
        answers = [peer.old_step([ACTION]) for _ in range(6)]
        assert [answer["reward"] for answer in answers] == [[4], [4], [14], [4], [14], [4]]
        assert [answer["done"][0] for answer in answers] == [False, False, True, False, True, False]


def test_a_time_limit_is_not_told(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--limit=5") as peer:
        peer.greet()
        peer.old_reset()
        answers = [peer.old_step([ACTION]) for _ in range(3)]
        assert [answer["done"] for answer in answers] == [[False]] * 3
        assert [answer["obs"][0]["zeta"][1] for answer in answers] == [4, 2, 0]


def test_who_leaves_is_done_once_and_who_joins_takes_the_place(
    counter: Path, tmp_path: Path
) -> None:
    with playing(counter, tmp_path, "--agents=2", "--leave=7", "--join=15") as peer:
        peer.greet()
        peer.old_reset()
        answers = [peer.old_step([ACTION] * 2) for _ in range(6)]
        assert [answer["done"][0] for answer in answers] == [False, True, *[False] * 4]
        assert [answer["reward"][0] for answer in answers[2:3]] == [0]
        assert answers[2]["obs"][0] == answers[0]["obs"][0]
        assert answers[5]["reward"] == [4, 4]
        assert [answer["done"][1] for answer in answers] == [False] * 6


def test_infos_calls_and_a_method_that_is_not_there(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--agents=2", "--infos=1") as peer:
        peer.greet()
        assert peer.old_reset()["info"] == [{"age": 1}, {"age": 1}]
        peer.say(type="call", method="tell_age")
        assert peer.hear() == {"type": "call", "returns": [1, 1]}
        peer.say(type="call", method="fly")
        assert peer.hear() == {"type": "call", "returns": [None, None]}
        assert peer.old_step([ACTION] * 2)["info"] == [{"age": 5}, {"age": 5}]
        assert any("has no method fly" in line for line in peer.process.lines())


def test_what_is_no_number_is_told_and_does_not_break_the_json(
    counter: Path, tmp_path: Path
) -> None:
    with playing(counter, tmp_path, "--nan=5") as peer:
        peer.greet()
        peer.old_reset()
        answer = peer.old_step([ACTION])
        assert answer["obs"][0]["zeta"] == [0, 0, 1]
        told = "observation 'zeta', index 1 is nan; sending 0"
        assert any(told in line and "/Counter0/" in line for line in peer.process.lines())
        assert peer.old_step([ACTION])["obs"][0]["zeta"] == [0, 8, 1]
