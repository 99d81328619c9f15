"""`estragon distill`: a small network that acts like a trained policy."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from estragon.support.errors import UserError
from estragon.support.files import ensure_writable
from estragon.support.options import check_span, optional
from estragon.support.progress import counting

LARGEST_LAYER, MOST_LAYERS = 4096, 8


@dataclasses.dataclass(frozen=True)
class DistillCommand:
    """Teach a small network to act like a trained policy, on the states it visits itself (DAgger).

    Policies of tag learn in the embedded engine, all others in their game. Prints size, speed and
    strength beside the teacher's.
    """

    teacher: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Policies of tag (.npz, .pt or .onnx, one or both roles); or one model of another game: an
    .onnx file, a Stable-Baselines3 .zip, an RLlib checkpoint, or a run directory."""
    student: str = "32x32"
    """Sizes of the student's hidden layers."""
    out: Path = Path("policies")
    """Output directory: <teacher>-32x32.onnx."""
    game: Annotated[str | None, optional("PATH")] = None
    """The game of the teacher; by default that of its run, or tag."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play; by default that of the teacher's run, or the game's main scene."""
    policy: Annotated[str | None, optional("NAME")] = None
    """Which policy of an RLlib checkpoint."""
    steps: int = 40_000
    """For a game: steps of all agents in which the student learns."""
    episodes: int = 100
    """For a game: episodes for the returns."""
    rounds: int = 12
    """For tag: rounds of playing and learning."""
    matches: int = 1000
    """For tag: matches for each win rate."""
    seed: int = 0
    """Seed of the games and of the student's initial weights."""
    trust: bool = False
    """Load a model that Estragon did not write; loading it can run any code stored in it."""

    def run(self) -> None:
        """Teach, write, and report."""
        layers = self._layers()
        for name, value, most in (
            ("--steps", self.steps, 10**9),
            ("--episodes", self.episodes, 10**6),
            ("--rounds", self.rounds, 1000),
            ("--matches", self.matches, 10**6),
        ):
            check_span(name, value, 1, most)
        check_span("--seed", self.seed, 0, 2**31 - 1)
        ensure_writable(self.out / "student.onnx")
        if not self.teacher:
            raise UserError("give a teacher: a policy file, a model or a run directory")
        from estragon.trainers.settings import use_one_thread

        use_one_thread()
        if self._is_tag():
            self._tag(layers)
        else:
            self._game(layers)

    def _layers(self) -> list[int]:
        sizes = self.student.lower().split("x")
        if not all(size.isdecimal() and 1 <= int(size) <= LARGEST_LAYER for size in sizes) or (
            len(sizes) > MOST_LAYERS
        ):
            raise UserError(f"--student: expected sizes such as 32x32, got '{self.student}'")
        return [int(size) for size in sizes]

    def _is_tag(self) -> bool:
        from estragon.onnx.metadata import read_metadata

        if self.game is not None:
            return self.game == "tag"
        first = self.teacher[0]
        if first.suffix == ".onnx":
            return "rules_hash" in read_metadata(first)
        return first.suffix in (".npz", ".pt")

    def _tag(self, layers: list[int]) -> None:
        from estragon.onnx.tag_distill import distill_policies

        for line in distill_policies(
            self.teacher,
            layers,
            self.out,
            label=self.student,
            rounds=self.rounds,
            matches=self.matches,
            seed=self.seed,
        ):
            print(line, flush=True)

    def _game(self, layers: list[int]) -> None:
        from estragon.trainers.players import game_settings
        from estragon.trainers.smaller import as_onnx, distill_in_game

        if len(self.teacher) > 1:
            raise UserError(f"one teacher at a time, got {len(self.teacher)}")
        (teacher,) = self.teacher
        settings = game_settings(
            str(teacher), self.game, scene=self.scene, seed=self.seed, trust=self.trust
        )
        name = (teacher.parent if teacher.stem == "model" else teacher).stem
        target = self.out / f"{name}-{self.student}.onnx"
        with (
            as_onnx(teacher, settings, self.policy) as file,
            counting("teaching", " rounds") as report,
        ):
            found = distill_in_game(
                file,
                layers,
                settings,
                target,
                steps=self.steps,
                episodes=self.episodes,
                report=report,
            )
        print(found.describe())
