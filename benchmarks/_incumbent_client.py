"""The client of Godot RL Agents at play, in an environment of its own; prints agent-steps a second.

Called with a game, a port, how many seconds to play, a speedup, a frame rate (0: none)
and the action repeat.
"""

import itertools
import sys
import time

from godot_rl.core.godot_env import GodotEnv

WARM_UP_STEPS = 20


def main(game: str, port: int, seconds: float, speedup: int, framerate: int, repeat: int) -> None:
    """Play at random, and say how fast."""
    env = GodotEnv(
        env_path=game,
        port=port,
        seed=0,
        speedup=speedup,
        framerate=framerate or None,
        action_repeat=repeat,
    )
    env.reset()
    spaces = env.tuple_action_spaces

    def actions() -> list[list[object]]:
        sampled = [space.sample() for space in spaces]
        return [list(parts) for parts in zip(*sampled, strict=True)]

    known = itertools.cycle([actions() for _ in range(16)])
    for _ in range(WARM_UP_STEPS):
        env.step(next(known), order_ij=False)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        env.step(next(known), order_ij=False)
        steps += 1
    print("agent-steps/s:", steps * env.num_envs / (time.perf_counter() - start))
    env.close()


if __name__ == "__main__":
    game, port, seconds, *paces = sys.argv[1:]
    main(game, int(port), float(seconds), *map(int, paces))
