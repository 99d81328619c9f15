"""`estragon judge evaluate`: let any model play a game or tag, and write down every episode."""

import collections
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estragon.envs.http_channel import HttpEndpoint
from estragon.godot.find import check_version, require_godot
from estragon.judge import provenance
from estragon.judge.evaluation_file import (
    FORMAT,
    LENGTH,
    REWARD,
    SUCCESS,
    TIMES,
    Episode,
    Evaluation,
)
from estragon.judge.performance import Meter
from estragon.judge.statistics import mean_interval
from estragon.onnx.tag_strength import OnnxPlayer
from estragon.spacetime.client import GodotAPIClient
from estragon.support.errors import UserError
from estragon.support.parameters import Plan
from estragon.tag.matches import (
    BATCH,
    GODOT_ARENAS,
    EngineName,
    Player,
    load_player,
    open_arenas,
    play_batches,
)
from estragon.tag.rules import Role, Rules, load_rules
from estragon.trainers.metrics import OWN_INFO_KEYS
from estragon.trainers.players import RANDOM, OpenPlayer, open_player
from estragon.trainers.sb3.scene_callbacks import RATIOS
from estragon.trainers.sb3.settings import Sb3Settings

Report = Callable[[float, float], None]
MATCH_SEEDS = 1_000_000
"""Match n of a seed has the number seed × this + n."""


def evaluate_game(
    model: str,
    settings: Sb3Settings,
    episodes: int,
    *,
    success_key: str,
    max_steps: int,
    plan: Plan | None,
    report: Report,
) -> Evaluation:
    """Let a model play a Godot game; every agent plays as many episodes, rounded up.

    Taking the episodes that end first would favour short ones.
    """
    with open_player(model, settings, plan) as player:
        meter = Meter(lambda: player.games.pids)
        found, complete = _play(player, meter, episodes, success_key, max_steps, report)
        segments, crashes = meter.segments(), player.games.restarts
        reported = _reported(player.games.http_endpoint)
    if not found:
        raise UserError(f"no episode ended within {max_steps:,} steps (--max_steps)")
    path = None if settings.env_path is None else Path(settings.env_path).expanduser()
    result = Evaluation(
        mean_reward=float(np.mean([each.reward for each in found])),
        game="" if path is None else path.absolute().name,
        scene=settings.scene or "",
        arguments=dict(settings.arguments or {}),
        parameters=None if plan is None else plan.plain(),
        complete=complete,
        game_crashes=crashes,
        build=provenance.build_of(path),
        episodes=found,
        segments=segments,
        reported=reported,
    )
    # An exported game is a Godot of its own; its digest says which.
    is_project = path is not None and (path.is_dir() or path.suffix == ".pck")
    godot = check_version(require_godot()) if is_project else ""
    return _completed(result, model, settings.seed, godot)


def evaluate_tag(
    model: str,
    opponent: str,
    role: Role,
    episodes: int,
    *,
    rules_file: Path | None,
    rules_name: str | None,
    engine: EngineName,
    layout: str | None,
    seed: int,
    report: Report,
) -> Evaluation:
    """Let a policy or a bot play matches of tag in a role against an opponent."""
    from estragon.support import paths
    from estragon.tag.layout import load_layouts

    rules = load_rules(rules_file, rules=rules_name)
    specs = (model, opponent) if role == "seeker" else (opponent, model)
    seeker, hider = _tag_player(specs[0], rules, "seeker"), _tag_player(specs[1], rules, "hider")
    spec = layout or rules.layout
    layouts = load_layouts(spec, rules)
    count = min(episodes, BATCH if engine == "embedded" else GODOT_ARENAS)
    with open_arenas(engine, count, rules=rules, layouts=layouts, seed=seed) as arenas:
        outcomes = play_batches(
            arenas, seeker, hider, episodes, lambda played: report(played, episodes)
        )
    side = 0 if role == "seeker" else 1
    rewards = outcomes.rewards[:, side]
    found = [
        Episode(
            agent=role,
            number=number,
            seed=seed * MATCH_SEEDS + number,
            reward=float(rewards[number]),
            length=int(outcomes.ticks[number]) // rules.episode.step_tick_interval,
            success=bool(outcomes.winners[number] == side),
            metrics={"out_of_sight": float(outcomes.out_of_sight[number])},
        )
        for number in range(episodes)
    ]
    result = Evaluation(
        mean_reward=float(rewards.mean()),
        opponent=opponent,
        game="tag",
        scene=Path(spec).name,
        arguments={"role": role, "engine": engine, "rules": rules.rules},
        build=provenance.build_of(rules_file or paths.godot_project()),
        episodes=found,
    )
    return _completed(result, model, seed, "")


def describe(result: Evaluation) -> str:
    """A few lines for people."""
    lines = [f"{result.model} on {result.scene or result.game}: {len(result.episodes)} episodes"]
    for name, (mean, low, high) in result.intervals.items():
        lines.append(f"  {name:22} {mean:10.4g}  (95% interval {low:.4g} to {high:.4g})")
    if not result.complete:
        lines.append("  WARNING: the limit of steps was reached before all episodes had ended")
    if result.game_crashes:
        lines.append(f"  WARNING: the game crashed or hung {result.game_crashes} times")
    return "\n".join(lines)


def _play(
    player: OpenPlayer,
    meter: Meter,
    episodes: int,
    success_key: str,
    max_steps: int,
    report: Report,
) -> tuple[list[Episode], bool]:
    agents = player.num_agents
    share = -(-episodes // agents)
    played: collections.Counter[str] = collections.Counter()
    found: list[Episode] = []
    for _ in range(0, max_steps, agents):
        ended = player.step()
        meter.step()
        for reward, length, info in ended:
            agent = str(info["episode"]["agent"])
            if "game_lost" not in info and played[agent] < share:
                found.append(_episode(agent, played[agent], reward, length, info, success_key))
                played[agent] += 1
        report(len(found), share * agents)
        if len(found) >= share * agents:
            break
    found.sort(key=lambda each: (each.number, len(each.agent), each.agent))
    return found, len(found) >= share * agents


def _reported(endpoint: HttpEndpoint | None) -> dict[str, float]:
    """Engine and memory numbers of `GET /performance`, such as `physics_process_time`."""
    if endpoint is None:
        return {}
    with GodotAPIClient(endpoint.port, endpoint.token) as client:
        found = client.get_performance_metrics()
    groups = [found.get(group, {}) for group in ("engine", "memory")]
    return {
        name: float(value)
        for group in groups
        for name, value in group.items()
        if isinstance(value, int | float)
    }


def _episode(
    agent: str, number: int, reward: float, length: int, info: Mapping[str, Any], success_key: str
) -> Episode:
    told = dict(info)
    performance = told.pop("performance", None)
    if isinstance(performance, list):
        told |= zip(RATIOS, performance, strict=False)
    metrics = {
        key: float(value)
        for key, value in told.items()
        if isinstance(value, bool | int | float)
        and math.isfinite(value)
        and key not in OWN_INFO_KEYS
        and key not in (success_key, REWARD, LENGTH, SUCCESS)
    }
    if not math.isfinite(reward):
        raise UserError(f"the reward of agent {agent}'s episode {number} is {reward}")
    return Episode(
        agent=agent,
        number=number,
        seed=info.get("seed"),
        reward=reward,
        length=int(length),
        success=bool(info[success_key]) if success_key in info else None,
        metrics=metrics,
        parameters=dict(info.get("parameters", {})),
    )


def _tag_player(spec: str, rules: Rules, role: Role) -> Player:
    if not spec.endswith(".onnx"):
        return load_player("bot:random" if spec == RANDOM else spec, rules, role)
    if not Path(spec).is_file():
        raise UserError(f"{spec} does not exist")
    return OnnxPlayer(Path(spec))


def _completed(result: Evaluation, model: str, seed: int, godot: str) -> Evaluation:
    """Add what every evaluation has."""
    samples = result.samples()
    for name in TIMES:
        if len(values := result.segment_values(name)):
            samples[name] = values
    path = Path(model).expanduser()
    result.format, result.seed = FORMAT, seed
    result.model = path.name if path.exists() else model
    result.model_digest = provenance.digest_of(path) if path.exists() else ""
    result.mean_episode_length = float(samples[LENGTH].mean())
    result.success_rate = float(samples[SUCCESS].mean()) if SUCCESS in samples else None
    result.intervals = {name: mean_interval(values) for name, values in samples.items()}
    result.versions, result.machine = provenance.versions(godot), provenance.machine()
    result.date, result.command = provenance.now(), provenance.command()
    return result
