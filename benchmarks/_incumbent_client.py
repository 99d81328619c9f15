"""The client of Godot RL Agents at play, in an environment of its own.

Called with a game, a port, a speedup, a frame rate (0: none) and the action repeat. Prints how many
agents there are; then for every line with a number it plays as many steps at random, and prints the
seconds that they took.
"""

import itertools
import sys
import time

from godot_rl.core.godot_env import GodotEnv


def main(game: str, port: int, speedup: int, framerate: int, repeat: int) -> None:
    """Play when asked."""
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
    print("agents:", env.num_envs, flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            env.step(next(known), order_ij=False)
        print("seconds:", time.perf_counter() - start, flush=True)
    env.close()


if __name__ == "__main__":
    game, *numbers = sys.argv[1:]
    main(game, *map(int, numbers))
