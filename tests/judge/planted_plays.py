"""Scripted plays that lead to the planted bugs, with actions of the agent alone.

A play may ask the game where the agent is; everything else it knows from observations.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from estragon.envs.gymnasium_env import GodotEnv


class LostError(Exception):
    """The game crashed or hung."""


class Game:
    """A game that is played, and everything that it told."""

    def __init__(self, env: GodotEnv, log: Path) -> None:
        self.env, self.log_file = env, log
        self.seen: list[Any] = []
        """Observations, one row per agent; of an episode's last step, the last one of it."""
        self.rewards: list[np.ndarray] = []
        self.ends: list[str] = []
        self.infos: list[dict[str, Any]] = []
        self.seconds: list[float] = []
        """Processor time of the game in each step, which other programs do not change."""
        self.notes: list[float] = []
        """What a play measured itself."""
        self.lost = False
        self.starts: list[Any] = []
        """The first observations of episodes."""
        self.reset(1)
        self.memory_before = self.memory_mb()

    def reset(self, seed: int) -> None:
        self.obs, _ = self.env.reset(seed=seed)
        self.starts.append(self.obs)

    def step(self, action: Any) -> None:
        """One action of every agent; raises LostError when the game is gone."""
        start = self.cpu_sec()
        self.obs, rewards, terminated, truncated, infos = self.env.step(action)
        final = infos.get("final_info", {})
        if "game_lost" in final:
            self.lost = True
            raise LostError
        self.seconds.append(self.cpu_sec() - start)
        ended = bool(terminated.any() or truncated.any())
        self.seen.append(infos["final_obs"][0] if ended and self.env.num_envs == 1 else self.obs)
        self.rewards.append(rewards)
        self.ends.append("terminated" if terminated.any() else "truncated" if ended else "")
        self.infos.append(final if ended else infos)
        if ended:
            self.starts.append(self.obs)

    @property
    def ended(self) -> bool:
        return bool(self.ends and self.ends[-1])

    def column(self, part: int | slice | list[int], key: str = "obs") -> np.ndarray:
        """Some numbers of all observations: (steps, agents, numbers)."""
        return np.array([np.atleast_2d(seen[key])[:, part] for seen in self.seen])

    def now(self, agent: int = 0, key: str = "obs") -> np.ndarray:
        return np.asarray(self.obs[key][agent])

    def place(self, method: str = "get_position") -> np.ndarray:
        """Where the agent is, in its arena."""
        return np.array([float(part) for part in self.env.call(method)[0].strip("()").split(",")])

    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def cpu_sec(self) -> float:
        stat = Path(f"/proc/{self.env.pids[0]}/stat").read_text()
        return sum(map(int, stat.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        pages = Path(f"/proc/{self.env.pids[0]}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE") / 1e6

    def leaked_mb(self) -> float:
        return self.memory_mb() - self.memory_before


Play = Callable[[Game], None]


def unit(way: np.ndarray) -> np.ndarray:
    return np.asarray(way / max(float(np.linalg.norm(way)), 1e-6))


# Marble


def push(game: Game, way: Any) -> None:
    game.step(np.asarray(way, np.float32).reshape(1, 2))


def to_goal(game: Game) -> np.ndarray:
    """A push to the goal that brakes sideways, and tries another way when it is stuck."""
    way, speed = 10 * game.now()[32:34], 8 * game.now()[34:36]
    stuck = len(game.seen) % 40 > 20 and np.linalg.norm(speed) < 0.4
    turned = np.array([-way[1], way[0]])
    return unit(turned if stuck else way - 0.9 * speed)


def roll_to(x: float, z: float) -> Play:
    def play(game: Game) -> None:
        for _ in range(150):
            at = game.place()
            push(game, unit(np.array([x - at[0], z - at[2]]) - 0.5 * 8 * game.now()[34:36]))

    return play


def roll_off_in_front(game: Game) -> None:
    for _ in range(150):
        game.notes.append(float(game.place()[1]))
        push(game, (0, 1))


def roll_off_at_the_side(game: Game) -> None:
    for _ in range(1500):
        push(game, (1, 0))


def roll_into_goals(game: Game) -> None:
    for _ in range(500):
        push(game, to_goal(game))


def roll_about(game: Game) -> None:
    random = np.random.default_rng(1)
    for _ in range(150):
        target = random.uniform(-4.5, 4.5, 2)
        for _ in range(14):
            push(game, unit(target - game.place()[[0, 2]]))


def roll_beyond_the_left_edge(game: Game) -> None:
    """Note how often the marble was beside the floor, as high as on it."""
    for _ in range(150):
        x, y, z = game.place()
        game.notes.append(float(x < -6.3 and y > 0.3))
        push(game, unit(np.array([-6.6 - x, -z]) - 0.5 * 8 * game.now()[34:36]))


def roll_into_drain(game: Game) -> None:
    """Come to rest in it, and note how far pushes to all sides get the marble."""
    drain = np.array([4.2, -4.2])
    for seed in range(1, 7):
        game.reset(seed)
        for _ in range(90):
            way = drain - game.place()[[0, 2]]
            push(game, way - 0.5 * 8 * game.now()[34:36])
            if game.ended or (np.linalg.norm(way) < 0.1 and max(abs(game.now()[34:36])) < 0.02):
                break
        if game.ended or np.linalg.norm(way) > 0.1:
            continue
        for side in ((-1, 0), (0, 1), (1, 0), (0, -1)):
            for _ in range(5):
                push(game, side)
                game.notes.append(float(np.linalg.norm(drain - game.place()[[0, 2]])))
        return


def reach_goal_late(game: Game) -> None:
    """Wait beside the goal until the last second."""
    for seed in range(1, 7):
        game.reset(seed)
        for number in range(113):
            way, speed = 10 * game.now()[32:34], 8 * game.now()[34:36]
            wanted = way if number > 103 else way - 1.7 * unit(way)
            push(game, 1.5 * wanted - 0.9 * speed)
            if game.ended:
                break
        if "its reward is inf" in game.log():
            return


# Orchard

MOVES = np.array([[0, 0], [0, -1], [0, 1], [-1, 0], [1, 0]])
ANGLES = np.radians(-180 + 22.5 * (np.arange(16) + 0.5))


def run(game: Game, move: int) -> None:
    game.step(np.array([move]))


def run_to(game: Game, way: np.ndarray, *, careful: bool = True) -> int:
    """The move that comes nearest, and near no thorn that the rays see."""
    near = game.now()[:16]
    hits = (160 * (1 - near))[:, None] * np.stack([np.cos(ANGLES), np.sin(ANGLES)], 1)
    hits = hits[near > 0]
    costs = []
    for move in MOVES:
        cost = float(np.linalg.norm(way - 32 * move))
        if careful and len(hits):
            gaps = [np.linalg.norm(hits - part * move, axis=1).min() for part in (16, 32, 44)]
            cost += 1000 * (min(gaps) < 26)
        costs.append(cost)
    return int(np.argmin(costs))


def eat(fruits: int, then: Play) -> Play:
    """Eat so many fruits in one episode, then do something else until that is over."""

    def play(game: Game) -> None:
        eaten = 0
        for _ in range(3000):
            run(game, run_to(game, 480 * game.now()[16:18]))
            eaten = 0 if game.ended else eaten + (game.rewards[-1][0] > 0.7)
            if eaten == fruits:
                then(game)
                return

    return play


def rest(game: Game) -> None:
    for _ in range(400):
        run(game, 0)
        if game.ended:
            return
    game.notes.append(1.0)


def stand_then_run(game: Game) -> None:
    """Note where the player is while it runs to all sides."""
    for _ in range(60):
        run(game, 0)
    for move in (1, 4, 2, 3):
        for _ in range(6):
            run(game, move)
            game.notes.extend(game.place("get_global_position"))


def run_against_walls(game: Game) -> None:
    for way in ([0, -600], [600, 0], [0, 600], [-600, 0]):
        for _ in range(16):
            run(game, run_to(game, np.array(way)))


def leave_at_the_upper_right(game: Game) -> None:
    for number in range(500):
        at = game.place("get_global_position")
        is_up = at[1] < -224
        move = run_to(game, np.array([600.0 - at[0], 0.0] if is_up else [0.0, -300.0]))
        run(game, 2 if number % 40 == 39 else move)  # Who stands for too long may doze off.


def run_into_thorns(game: Game) -> None:
    for _ in range(3000):
        near = game.now()[:16]
        best = int(np.argmax(near))
        way = np.array([np.cos(ANGLES[best]), np.sin(ANGLES[best])])
        wanted = 100 * way if near[best] > 0 else 480 * game.now()[16:18]
        run(game, run_to(game, wanted, careful=False))


# Tag

LANES = np.array([-8.0, -4.0, 0.0, 4.0, 8.0])


def lane(x: float) -> float:
    return float(LANES[np.argmin(np.abs(LANES - x))])


def route(at: np.ndarray, to: tuple[float, float]) -> list[tuple[float, float]]:
    """Corners on the way between the columns."""
    x, z = float(at[0]), float(at[2])
    corner = (lane(to[0]), lane(to[1]))
    if abs(x - lane(x)) < 0.9:
        return [(lane(x), z), (lane(x), corner[1]), corner, to]
    return [(x, lane(z)), (corner[0], lane(z)), corner, to]


def walk(to: tuple[float, float] | None, then: Callable[[Game, int], Any], agent: int = 1) -> Play:
    """One agent goes to a place (None: near the other), the other one stands still."""

    def play(game: Game) -> None:
        for _ in range(4):  # episodes, if the first one ends on the way
            other = 10 * game.now(1 - agent)[:3]
            left = route(10 * game.now(agent)[:3], to or (float(other[0]), float(other[2])))
            for number in range(280):
                at = 10 * game.now(agent)[[0, 2]]
                is_there = not left or (to is None and np.linalg.norm(at - other[[0, 2]]) < 2.4)
                actions = np.zeros((2, 3), np.float32)
                if is_there:
                    actions[agent] = then(game, number)
                else:
                    way = np.array(left[0]) - at
                    left = left[1:] if np.linalg.norm(way) < 0.25 else left
                    speed = 8 * game.now(agent)[[3, 5]]
                    actions[agent, :2] = np.clip(1.5 * way - 0.35 * speed, -1, 1)
                game.step(actions)
                if game.ended:
                    break
            else:
                game.notes.append(1.0)
                return

    return play


def stay(game: Game, number: int) -> tuple[float, float, float]:
    return (0.0, 0.0, 0.0)


def hop(game: Game, number: int) -> tuple[float, float, float]:
    return (0.0, 0.0, 1.0)


def go_east(game: Game, number: int) -> tuple[float, float, float]:
    return (1.0, 0.0, 0.0)


def press_into_corner(game: Game, number: int) -> tuple[float, float, float]:
    return (1.0, 1.0, 0.0)


def climb(game: Game, number: int) -> tuple[float, float, float]:
    """From beside the low column at (2, -2) onto it."""
    x, y, z = 10 * game.now(1)[:3]
    speed = 8 * game.now(1)[[3, 5]]
    way = np.clip(1.5 * np.array([2.0 - x, -2.0 - z]) - 0.4 * speed, -1, 1)
    return (float(way[0]), float(way[1]), 1.0 if y < 1.2 else 0.0)


def jump_east(game: Game, number: int) -> tuple[float, float, float]:
    return (1.0, 0.0, 1.0)


def pounce(game: Game, number: int) -> tuple[float, float, float]:
    """Jump beside the seeker, and come down on its head."""
    at, other = 10 * game.now(1)[:3], 10 * game.now(0)[:3]
    away = unit((at - other)[[0, 2]])
    is_above = at[1] > 1.62
    way = other[[0, 2]] + (0.0 if is_above else 1.7) * away - at[[0, 2]]
    move = np.clip((2.5 if is_above else 1.5) * way - 0.35 * 8 * game.now(1)[[3, 5]], -1, 1)
    return (float(move[0]), float(move[1]), float(np.linalg.norm(way) < 0.3))


def run_askew(game: Game) -> None:
    for number in range(200):
        side = 1 if number % 40 < 20 else -1
        game.step(np.tile(np.array([side, side, 0], np.float32), (2, 1)))


def run_up_and_down(game: Game) -> None:
    for number in range(420):
        game.step(np.tile(np.array([0, 1 if number % 30 < 15 else -1, 0], np.float32), (2, 1)))


# Goals


def steer(game: Game, right: float, ahead: float, turn: float = 0.0) -> None:
    game.step(np.array([[right, ahead, turn]], np.float32))


def toward(ray: float) -> np.ndarray:
    """The stick that walks along a ray."""
    angle = math.tau * ray / 16
    return np.array([-math.sin(angle), math.cos(angle)])


def walk_to_goal(game: Game) -> None:
    """Along the free ray that is nearest to the goal, with a wide berth around boxes."""
    for seed in range(1, 9):
        game.reset(seed)
        for _ in range(499):
            rays, goal = game.now()[13:29], game.now()[[41, 43]] * [1, -1]
            room = np.minimum(rays, np.minimum(np.roll(rays, 1), np.roll(rays, -1)))
            gains = [float(toward(ray) @ unit(goal)) - 3 * (room[ray] < 1.6) for ray in range(16)]
            steer(game, *toward(int(np.argmax(gains))))
            if game.ended or "Division" in game.log():
                break


def start_again(game: Game) -> None:
    """Stand for a step at every start, and note how near the nearest box is."""
    for seed in range(150, 200):
        game.reset(seed)
        steer(game, 0, 0)
        game.notes.append(float(game.now()[13:29].min()))


def walk_off(game: Game) -> None:
    """Straight ahead to the edge of the floor, with a wide berth around boxes."""
    for seed in range(1, 5):
        game.reset(seed)
        for _ in range(499):
            rays = game.now()[13:29]
            room = np.minimum(rays, np.minimum(np.roll(rays, 1), np.roll(rays, -1)))
            gains = [float(toward(ray)[1]) - 3 * (room[ray] < 1.6) for ray in range(16)]
            steer(game, *toward(int(np.argmax(gains))))
            if game.ended:
                break


def bump(backwards: bool) -> Play:
    """Walk against the nearest box again and again, and away from it in between."""

    def play(game: Game) -> None:
        for seed in range(1, 5):
            game.reset(seed)
            for _ in range(499):
                rays = game.now()[13:29]
                ray = int(np.argmin(rays))
                if rays[ray] > 4.9:
                    steer(game, *unit(game.now()[[41, 43]] * [1, -1]))
                elif abs(math.remainder(ray - (8 if backwards else 0), 16)) > 2:
                    steer(game, 0, 0, 1)
                elif rays[ray] > 0.308:
                    steer(game, *toward(ray))
                else:
                    for _ in range(8):
                        steer(game, *-toward(ray))
                    game.notes.append(float(np.linalg.norm(game.now()[[7, 9]])))
                if game.ended:
                    break

    return play


def hold(right: float, ahead: float, turn: float, steps: int, flip: int = 0) -> Play:
    def play(game: Game) -> None:
        for number in range(steps):
            sign = -1 if flip and number // flip % 2 else 1
            steer(game, right, sign * ahead, turn)

    return play


# Landing


def fly(steps: int, lift: float = 0.0, rcs: tuple[float, float] = (0.0, 0.0)) -> Play:
    """Hold the main engine and the RCS; it changes sides, so that the craft stays where it is."""

    def play(game: Game) -> None:
        for number in range(steps):
            side = -1 if number // 10 % 2 else 1
            game.step(np.array([[0, lift, 0, side * rcs[0], side * rcs[1]]], np.float32))

    return play


def land(game: Game) -> None:
    """Follow the guidance; near the pad, sink ever more slowly."""
    for _ in range(500):
        landing = game.now(key="landing")
        way, speed, off = 20 * landing[:3], 50 * game.now()[1:4], 5 * landing[11:14]
        if np.abs(way).max() < 19:
            off = np.array([0.4 * way[0], min(0.2 * way[1], -0.7), 0.4 * way[2]]) - speed
        thrust = (off / 0.5 + [0, 1.62, 0]) / 5
        game.step(np.array([[*np.clip(thrust, -1, 1), 0, 0]], np.float32))
        if game.ended:
            return


def land_in_the_middle(game: Game) -> None:
    """The same, but the last bit with the engine off."""
    for _ in range(500):
        landing = game.now(key="landing")
        way, speed, off = 20 * landing[:3], 50 * game.now()[1:4], 5 * landing[11:14]
        if np.abs(way).max() < 19:
            off = np.array([0.6 * way[0], min(0.2 * way[1], -0.7), 0.6 * way[2]]) - speed
        thrust = (off / 0.5 + [0, 1.62, 0]) / 5
        is_down = way[1] > -0.25
        thrust = np.clip(np.zeros(3) if is_down else thrust, -1, 1)
        game.step(np.array([[*thrust, 0, 0]], np.float32))
        if game.ended:
            return


def hover(game: Game) -> None:
    for _ in range(510):
        thrust = (-50 * game.now()[1:4] / 0.5 + [0, 1.62, 0]) / 5
        game.step(np.array([[*np.clip(thrust, -1, 1), 0, 0]], np.float32))


def drop(*seeds: int) -> Play:
    """Fall from several starts, until the craft is far below its pad."""

    def play(game: Game) -> None:
        for seed in seeds:
            game.reset(seed)
            for _ in range(300):
                game.step(np.zeros((1, 5), np.float32))
                if game.ended or game.now()[0] < -0.1:
                    break
            if not game.ended:
                return

    return play


# Menu

PAGES = ("main", "settings", "audio", "comfort", "inventory")


def point(game: Game, x: float, y: float, *, trigger: bool = False, grip: bool = False) -> None:
    """Move the ray to a place of the panel: the only play that knows the menu's actions."""
    way = np.array([x, y]) - game.now()[:2]
    speed = 2 + np.sign(way) * np.select([np.abs(way) > 0.12, np.abs(way) > 0.02], [2, 1], 0)
    game.step(np.array([[*speed, trigger, grip]], np.int64))


def press(game: Game, slot: int, *, grip: bool = False) -> None:
    """Point at a slot, then press the trigger or hold the grip there."""
    x, y = (0.4 if slot % 2 else -0.4), (0.2 if slot < 2 else -0.2)
    for _ in range(30):
        point(game, x, y)
        if game.ended:
            return
        if np.abs(game.now()[:2] - [x, y]).max() < 0.08:
            break
    point(game, x, y, trigger=not grip, grip=grip)
    if not game.ended and not grip:
        point(game, x, y)


def page(game: Game) -> str:
    return PAGES[int(np.argmax(game.now()[20:25]))]


def press_all(*slots: int, times: int = 1) -> Play:
    """Press slots one after the other, each time from the start of an episode."""

    def play(game: Game) -> None:
        for number in range(times):
            game.reset(number + 1)
            for slot in slots:
                press(game, slot)
            game.notes.append(PAGES.index(page(game)))

    return play


def drag_beyond_the_end(game: Game) -> None:
    for slot in (1, 0):
        press(game, slot)
    press(game, 0, grip=True)
    for _ in range(15):
        point(game, 0.9, 0.2, grip=True)


def take_and_drop(game: Game) -> None:
    press(game, 2)
    for _ in range(40):
        press(game, 0, grip=True)
        point(game, -0.4, 0.2)


def point_aside(game: Game) -> None:
    for _ in range(60):
        point(game, -1000.0, 0.0)


def hold_lantern(game: Game) -> None:
    """Until the time is over."""
    press(game, 2)
    press(game, 0, grip=True)
    for _ in range(250):
        point(game, -0.4, 0.2, grip=True)
        if game.ended:
            return
