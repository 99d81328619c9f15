"""Which policy plays an agent: by the game's own names, by a table, or by somebody's function."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from estragon.envs.pettingzoo_env import policy_of
from estragon.support.errors import UserError


class TableMapping:
    """A table: agent, or the game's name of its policy → policy."""

    def __init__(self, table: dict[str, str]) -> None:
        """Keep it."""
        self._table = table

    def __call__(self, agent_id: str, *_: Any, **__: Any) -> str:
        """The policy of an agent; one that is not in the table keeps the game's."""
        theirs = policy_of(agent_id)
        return self._table.get(agent_id, self._table.get(theirs, theirs))


class OneForAll:
    """One policy for everybody."""

    def __init__(self, policy: str) -> None:
        """Keep its name."""
        self._policy = policy

    def __call__(self, *_: Any, **__: Any) -> str:
        """That policy."""
        return self._policy


class CodeMapping:
    """The function in a text, which every process compiles for itself."""

    def __init__(self, code: str, where: str) -> None:
        """Check that it has one."""
        self._code, self._where = code, where
        self._function  # noqa: B018 - complains now

    def __getstate__(self) -> tuple[str, str]:
        """What other processes need."""
        return self._code, self._where

    def __setstate__(self, state: tuple[str, str]) -> None:
        """In another process."""
        self._code, self._where = state

    def __call__(self, agent_id: str, episode: Any = None, *_: Any, **__: Any) -> str:
        """What it says of an agent."""
        known = inspect.signature(self._function).parameters
        told = {"episode": episode, "worker": None}
        return str(self._function(agent_id, **{key: told[key] for key in told if key in known}))

    @functools.cached_property
    def _function(self) -> Callable[..., Any]:
        names: dict[str, Any] = {}
        try:
            exec(compile(self._code, self._where, "exec"), names)  # noqa: S102 - the user's own
        except Exception as error:
            raise UserError(f"{self._where}: policy_mapping_fn: {error}") from error
        found = names.get("policy_mapping_fn")
        if not callable(found):
            raise UserError(f"{self._where}: expected def policy_mapping_fn(agent_id, …)")
        function: Callable[..., Any] = found
        return function
