"""Names of agents, which say the policy that plays them."""

from typing import Any

from estragon.envs.roster import Agent


def name_of(agent: Agent) -> str:
    """For example shared_policy:3."""
    return f"{agent.policy}:{agent.id}"


def policy_of(agent_id: str, *_: Any, **__: Any) -> str:
    """The policy in an agent's name: RLlib's `policy_mapping_fn` for every game."""
    return agent_id.rpartition(":")[0]
