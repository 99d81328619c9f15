"""What is learned from real Godot belongs together: ids are planted in everything it sees."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from estragon.live.learning import LearningActor
from estragon.live.protocol import Decision
from estragon.selfplay.policy import Policy
from estragon.selfplay.ppo import Batch
from estragon.selfplay.trainer import Trainer
from estragon.tag.rules import HIDER, SEEKER, load_rules
from tests.godot.staging import until
from tests.live.planted import SCENE, ids_of, planted_rewards
from tests.live.staging import PATIENCE_SEC, serving
from tests.live.test_godot_client import playing
from tests.live.test_learning import KeepingSource, keeping, log_probs, newest
from tests.selfplay.staging import CONFIG, task_of

ARENAS, HORIZON, STRETCHES = 8, 32, 12


class Witness(LearningActor):
    """Learns, and keeps what it was asked and what it answered."""

    def __init__(self, trainer: Trainer, source: KeepingSource) -> None:
        super().__init__(trainer, source)
        self.asked: list[Decision] = []
        self.answered: list[np.ndarray] = []

    def decide(self, asked: Sequence[tuple[int, Decision]]) -> list[np.ndarray]:
        answers = super().decide(asked)
        self.asked += [decision for _, decision in asked]
        self.answered += [answer.copy() for answer in answers]
        return answers


@pytest.mark.slow
def test_observation_action_chance_reward_and_number_belong_together(tmp_path: Path) -> None:
    """Without discount an advantage and a value say what the reward was; it tells id and action."""
    config = replace(CONFIG, horizon=HORIZON, past=0.0, sparring=0.0, gamma=0.0)
    trainer, source = keeping(
        task_of(rules=load_rules()), horizon=HORIZON, past=0.0, sparring=0.0, gamma=0.0
    )
    actor = Witness(trainer, source)
    with (
        serving(lambda _: actor) as server,
        playing(server.port, tmp_path, f"--arenas={ARENAS}", scene=SCENE, time_limit_sec="1"),
    ):
        enough = f"{STRETCHES} stretches"
        until(lambda: len(source.delivered) >= STRETCHES, 3 * PATIENCE_SEC, enough)
    assert [decision.seq for decision in actor.asked] == list(range(len(actor.asked)))
    ended = seen = 0
    for stretch, rollout in enumerate(source.delivered[:STRETCHES]):
        first = stretch * HORIZON
        asked = actor.asked[first : first + HORIZON]
        answers = np.stack(actor.answered[first : first + HORIZON])
        observations = np.stack([decision.observations for decision in asked])
        ids = ids_of(observations)
        for role in (SEEKER, HIDER):
            batch, policy = rollout.batches[role], newest(source, trainer.task.rules)[role]
            assert len(batch.features) == ARENAS * HORIZON
            own = observations[:, :, role].reshape(ARENAS * HORIZON, -1)
            actions = answers[:, :, role].reshape(-1, 3)
            features = policy.features(torch.from_numpy(own)).numpy()
            assert np.allclose(batch.features, features, atol=1e-5), "the observation"
            assert np.allclose(actions_of(policy, batch, own), actions, atol=1e-5), "the action"
            assert np.allclose(batch.log_probs, log_probs(policy, batch), atol=1e-3)
            rewards = (batch.advantages + batch.values) / config.reward_scale
            expected = planted_rewards(ids[:, :, role].ravel(), actions)
            assert np.allclose(rewards, expected, atol=1e-2), "the reward"
            seen += len(expected)
        ended += len(rollout.episodes)
    assert seen == 2 * STRETCHES * ARENAS * HORIZON
    assert ended >= 50


def actions_of(policy: Policy, batch: Batch, observations: np.ndarray) -> np.ndarray:
    """What the actions of a batch mean for agents that see this, in world axes."""
    forward = observations[:, policy.rules.field("forward")]
    ahead, aside = policy.moves.numpy()[batch.actions[:, 0]].T
    x = ahead * forward[:, 0] - aside * forward[:, 1]
    z = ahead * forward[:, 1] + aside * forward[:, 0]
    return np.stack([x, z, batch.actions[:, 1]], axis=1)
