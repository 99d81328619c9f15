"""Whoever plays: a scripted bot or a policy file, under one name."""

from pathlib import Path
from typing import Protocol

import numpy as np

from estragon.support.errors import UserError
from estragon.tag.policy_files import load_policy
from estragon.tag.roles import Role
from estragon.tag.rules import Rules


class Player(Protocol):
    """Anything that turns observations into actions."""

    name: str

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for observations (rows, observation size) float32."""
        ...


def load_player(spec: str, rules: Rules, role: Role) -> Player:
    """`bot:NAME`, or a policy file that was trained for this role."""
    if spec.startswith("bot:"):
        from estragon.tag.bots import Bot  # needs numba; a policy does not

        return Bot(spec.removeprefix("bot:"), rules)
    path = Path(spec)
    if not path.is_file():
        raise UserError(
            f"no player '{spec}': give a policy file or bot:random, bot:chaser, bot:evader"
        )
    return load_policy(path, rules, role)
