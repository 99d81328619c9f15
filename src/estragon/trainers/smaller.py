"""Policies of any game made smaller, by int8 or by distillation, and measured in that game."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecMonitor
from torch import nn
from torch.nn import functional

from estragon.onnx.metadata import read_metadata
from estragon.onnx.quantize import INT8, Feed, cost, describe_cost, quantized
from estragon.onnx.torch_export import OUTPUT, STATE_IN, STATE_OUT, export_policy, session_of
from estragon.support.errors import UserError
from estragon.support.files import write_whole
from estragon.trainers.metrics import Episodes
from estragon.trainers.players import OnnxPolicy
from estragon.trainers.sb3.evaluating import play_episodes
from estragon.trainers.sb3.settings import Sb3Settings
from estragon.trainers.sb3.training import open_games
from estragon.trainers.spaces import action_layout, check_outputs

CALIBRATION_STEPS = 256
HELD_OUT = 1_000_003
"""Between the seeds of episodes to learn from and those to measure on."""
FAR = 0.05
"""A continuous action that moved by more than this counts as changed; its range is 2."""
ROUNDS, EPOCHS, BATCH = 10, 20, 256
LEARNING_RATE = 2e-3
TEACHER_SHARE = 0.5
"""Of the agents that the teacher plays: all in the first round, this share of it in each after;
none in the last."""
Report = Callable[[float, float], None]


@dataclasses.dataclass(frozen=True)
class Smaller:
    """What became of a policy."""

    path: Path
    cost: dict[str, Any]
    changed: float
    """Share of the original's actions that it takes differently, where both see the same."""
    before: Episodes
    after: Episodes

    def describe(self) -> str:
        """In one line."""
        return (
            f"wrote {self.path}: {describe_cost(self.cost)}; {self.changed:.1%} of actions "
            f"changed; mean return {self.before.reward_mean:.3f} → {self.after.reward_mean:.3f} "
            f"({len(self.after)} episodes each)"
        )


class OnnxModel:
    """An ONNX file as a model of SB3: `predict` is all that playing needs."""

    def __init__(self, path: Path, does: spaces.Space[Any]) -> None:
        self.policy = OnnxPolicy(path)
        self._does = does

    def predict(
        self, observed: Any, _state: Any, begins: np.ndarray, _deterministic: bool = True
    ) -> tuple[np.ndarray, None]:
        """The actions of all agents; the file's memory is its own matter."""
        return self.policy(observed, self._does, begins), None


def quantize_in_game(source: Path, settings: Sb3Settings, episodes: int) -> Smaller:
    """Write `<name>.int8.onnx` beside a file, calibrated on what it sees in its game."""
    target = source.with_suffix(f".{INT8}.onnx")
    with contextlib.closing(open_games(settings, None)) as games:
        model = OnnxModel(source, games.action_space)
        feeds: list[dict[str, np.ndarray]] = []
        model.policy.fed = feeds
        games.seed(settings.seed)
        while len(feeds) < CALIBRATION_STEPS:
            play_episodes(model, games, games.num_envs)  # type: ignore[arg-type]
        write_whole(target, quantized(source.read_bytes(), feeds))
        model.policy.fed = feeds = []
        before = _play(model, games, settings, episodes)
        model.policy.fed = None
        smaller = OnnxModel(target, games.action_space)
        changed = changed_share(model.policy, smaller.policy, feeds, games.action_space)
        after = _play(smaller, games, settings, episodes)
    return Smaller(target, cost(source, target), changed, before, after)


def changed_share(
    one: OnnxPolicy, other: OnnxPolicy, feeds: Sequence[Feed], does: spaces.Space[Any]
) -> float:
    """Share of the actions that two files take differently on the same inputs."""
    least = FAR if isinstance(does, spaces.Box) else 0.0
    apart = [
        np.abs(one.decided(feed, does) - other.decided(feed, does)).reshape(
            len(next(iter(feed.values()))), -1
        )
        for feed in feeds
    ]
    return float(np.mean(np.concatenate(apart).max(axis=1) > least))


def _play(model: Any, games: VecMonitor, settings: Sb3Settings, episodes: int) -> Episodes:
    """Episodes that nothing was learned from or calibrated on."""
    games.seed((settings.seed + HELD_OUT) % 2**31)
    return play_episodes(model, games, episodes)


class Student(nn.Module):
    """A multi-layer perceptron over all observations side by side.

    It learns from normalized ones; `fold` then makes that a part of the first layer.
    """

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, seen: np.ndarray, layers: Sequence[int], outputs: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(seen.mean(axis=0)))
        self.register_buffer("std", torch.from_numpy(seen.std(axis=0) + 1e-3))
        self._is_folded = False
        parts: list[nn.Module] = []
        for width, following in pairwise([seen.shape[1], *layers]):
            parts += [nn.Linear(width, following), nn.ReLU()]
        self.net = nn.Sequential(*parts, nn.Linear(layers[-1], outputs))

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Observations, then the state, which is returned as it is."""
        *seen, state = inputs
        rows = [each.flatten(1) if each.dim() > 2 else each for each in seen]
        return self.outputs(rows[0] if len(rows) == 1 else torch.cat(rows, dim=1)), state

    def outputs(self, row: torch.Tensor) -> torch.Tensor:
        """(batch, outputs) for (batch, numbers)."""
        said: torch.Tensor = self.net(row if self._is_folded else (row - self.mean) / self.std)
        return said

    @torch.no_grad()
    def fold(self) -> "Student":
        """Scale the weights of the first layer instead of the observations."""
        first: Any = self.net[0]
        first.weight /= self.std
        first.bias -= first.weight @ self.mean
        self._is_folded = True
        return self


@dataclasses.dataclass
class _Lessons:
    """What was seen so far, and what the teacher said about it."""

    seen: list[np.ndarray] = dataclasses.field(default_factory=list)
    said: list[np.ndarray] = dataclasses.field(default_factory=list)


def distill_in_game(
    teacher: Path,
    layers: Sequence[int],
    settings: Sb3Settings,
    target: Path,
    *,
    steps: int,
    episodes: int,
    report: Report = lambda _, __: None,
) -> Smaller:
    """Teach a network with these hidden layers to act like a file, on states it visits (DAgger).

    `steps` are those of all agents together, in which the student learns.
    """
    torch.manual_seed(settings.seed)
    random = np.random.default_rng(settings.seed)
    with contextlib.closing(open_games(settings, None)) as games:
        master = OnnxPolicy(teacher)
        student, names, shapes = _teach(master, layers, games, steps, random, report)
        about = read_metadata(teacher) | {
            "distilled_from": about_teacher(teacher),
            "normalization": f"in the graph: {', '.join(names)}",
            "memory": "0",
        }
        about.pop("quantization", None)
        inputs = [*(torch.zeros(2, *shape) for shape in shapes), torch.zeros(2)]
        data = export_policy(student.fold().eval(), inputs, [*names, STATE_IN], about=about)
        _check(data, student, shapes, games.action_space, random)
        write_whole(target, data)
        smaller = OnnxModel(target, games.action_space)
        master = OnnxPolicy(teacher)
        original = OnnxModel(teacher, games.action_space)
        before = _play(original, games, settings, episodes)
        feeds: list[dict[str, np.ndarray]] = []
        smaller.policy.fed = feeds
        after = _play(smaller, games, settings, episodes)
        smaller.policy.fed = None
        changed = _changed_along(master, smaller.policy, feeds, games.action_space)
    return Smaller(target, cost(teacher, target), changed, before, after)


def about_teacher(teacher: Path) -> str:
    """For example dqn, 80000 steps."""
    about = read_metadata(teacher)
    steps = about.get("training_steps")
    return about.get("algorithm", teacher.name) + (f", {steps} steps" if steps else "")


def _teach(
    teacher: OnnxPolicy,
    layers: Sequence[int],
    games: VecMonitor,
    steps: int,
    random: np.random.Generator,
    report: Report,
) -> tuple[Student, list[str], list[tuple[int, ...]]]:
    """The student, and names and shapes of its inputs."""
    lessons, student, feed = _Lessons(), None, {}
    observed: Any = games.reset()
    begins = np.ones(games.num_envs, bool)
    per_round = max(1, steps // (ROUNDS * games.num_envs))
    for number in range(ROUNDS):
        share = TEACHER_SHARE**number if number < ROUNDS - 1 else 0.0
        taught = random.random(games.num_envs) < share
        for _ in range(per_round):
            feed = teacher.feed(observed, begins)
            said = teacher.said(feed)
            lessons.seen.append(_row(feed))
            lessons.said.append(said)
            if student is not None and not taught.all():
                with torch.no_grad():
                    own = student.outputs(torch.from_numpy(lessons.seen[-1])).numpy()
                said = np.where(taught[:, None], said[:, : own.shape[1]], own)
            actions = teacher.decode(said, games.action_space)
            observed, _, begins, _ = games.step(actions)
        student = _learn(student, lessons, layers, games.action_space, random)
        report(number + 1, ROUNDS)
    if student is None:
        raise ValueError("no rounds")
    names = [name for name in feed if _is_observation(name)]
    return student, names, [feed[name].shape[1:] for name in names]


def _is_observation(name: str) -> bool:
    return name not in (STATE_IN, "seq_lens")


def _row(feed: Feed) -> np.ndarray:
    parts = [part.reshape(len(part), -1) for name, part in feed.items() if _is_observation(name)]
    return np.concatenate(parts, axis=1).astype(np.float32)


def _learn(
    student: Student | None,
    lessons: _Lessons,
    layers: Sequence[int],
    does: spaces.Space[Any],
    random: np.random.Generator,
) -> Student:
    """Move towards what the teacher said about everything that was seen."""
    seen, said = np.concatenate(lessons.seen), np.concatenate(lessons.said)
    layout = action_layout(does)
    width = sum(each["size"] for each in layout)
    if student is None:
        student = Student(seen, layers, width)
    optimizer = torch.optim.Adam(student.parameters(), LEARNING_RATE)
    rows, targets = torch.from_numpy(seen), torch.from_numpy(said[:, :width].copy())
    batches = max(1, len(seen) // BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, EPOCHS)
    for _ in range(EPOCHS):
        for chosen in np.array_split(random.permutation(len(seen)), batches):
            index = torch.from_numpy(chosen)
            loss = _loss(student.outputs(rows[index]), targets[index], layout)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        schedule.step()
    return student


def _loss(made: torch.Tensor, said: torch.Tensor, layout: Sequence[dict[str, Any]]) -> torch.Tensor:
    """The teacher's choice is the student's lesson, whatever the scale of the teacher's scores."""
    total, place = torch.zeros(()), 0
    for each in layout:
        ours, theirs = (x[:, place : place + each["size"]] for x in (made, said))
        if each["action_type"] == "continuous":
            total = total + functional.mse_loss(ours, theirs.clamp(-1.0, 1.0))
        else:
            total = total + functional.cross_entropy(ours, theirs.argmax(dim=1))
        place += each["size"]
    return total


def _changed_along(
    teacher: OnnxPolicy, student: OnnxPolicy, feeds: Sequence[Feed], does: spaces.Space[Any]
) -> float:
    """As `changed_share`, in the order of play: the teacher may have a memory."""
    apart = []
    for index, feed in enumerate(feeds):
        begins = np.full(len(next(iter(feed.values()))), index == 0)
        theirs = teacher.said(teacher.feed(dict(feed), begins))
        ours = student.decided(feed, does)
        apart.append(np.abs(teacher.decode(theirs, does) - ours).reshape(len(begins), -1))
    least = FAR if isinstance(does, spaces.Box) else 0.0
    return float(np.mean(np.concatenate(apart).max(axis=1) > least))


def _check(
    data: bytes,
    student: Student,
    shapes: Sequence[tuple[int, ...]],
    does: spaces.Space[Any],
    random: np.random.Generator,
) -> None:
    """UserError unless the file does what the student does."""
    session = session_of(data)
    rows = [random.normal(size=(1024, *shape)).astype(np.float32) for shape in shapes]
    names = [port.name for port in session.get_inputs()]
    feed = dict(zip(names, [*rows, np.zeros(1024, np.float32)], strict=True))
    output, _ = session.run([OUTPUT, STATE_OUT], feed)
    with torch.no_grad():
        ours = student.outputs(torch.from_numpy(_row(feed))).numpy()
    if output.shape != ours.shape:
        raise UserError(f"the ONNX file returns {output.shape}, not {ours.shape}; not written")
    layout = action_layout(does)
    parts = np.split(ours, np.cumsum([each["size"] for each in layout])[:-1], axis=1)
    actions = [
        np.clip(part, -1.0, 1.0)
        if each["action_type"] == "continuous"
        else part.argmax(axis=1, keepdims=True)
        for part, each in zip(parts, layout, strict=True)
    ]
    sizes = [(each["action_type"], each["size"]) for each in layout]
    check_outputs(output, np.concatenate(actions, axis=1), sizes)


@contextlib.contextmanager
def as_onnx(model: Path, settings: Sb3Settings, policy: str | None = None) -> Any:
    """Any model as an ONNX file: itself, or exported into a temporary folder."""
    if model.suffix == ".onnx":
        if not model.is_file():
            raise UserError(f"{model} does not exist")
        yield model
        return
    with tempfile.TemporaryDirectory(prefix="estragon-") as folder:
        if model.is_dir() and not (model / "model.zip").exists():
            from estragon.trainers.rllib.onnx_export import export_checkpoint
            from estragon.trainers.rllib.ray_session import be_quiet

            be_quiet()
            found = export_checkpoint(model, Path(folder), policy=policy, trust=settings.trust)
            if len(found) > 1:
                names = ", ".join(path.stem for path in found)
                raise UserError(f"{model} has several policies; choose with --policy: {names}")
            yield found[0]
            return
        from estragon.trainers.sb3.export import export
        from estragon.trainers.sb3.model_file import ModelFile

        path = model / "model.zip" if model.is_dir() else model
        source = ModelFile(path, settings.algo, trust=settings.trust, for_export=True)
        made = Path(folder) / f"{path.stem}.onnx"
        export(
            source.load_for_export(),
            source.algorithm.name,
            made,
            normalization=source.normalization,
        )
        yield made
