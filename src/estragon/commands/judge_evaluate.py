"""`estragon judge evaluate`: play any model on any game, and write every episode to a file."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

from estragon.spacetime.scenes import PRESETS, SceneName
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable
from estragon.support.options import check_span, optional
from estragon.support.progress import counting

TAG = "tag"


@dataclasses.dataclass(frozen=True)
class JudgeEvaluateCommand:
    """Play a model on a game for a number of episodes with fixed seeds, and write the result.

    The file has every episode (reward, length, success, the game's own numbers, its seed), means
    with 95% intervals, processor time and memory of the game, the build, versions and the machine.
    Exit code: 0 written, 2 bad input.
    """

    model: str
    """A Stable-Baselines3 model (.zip), an RLlib checkpoint, a run folder of either, an .onnx file,
    or random; for tag, a policy file (.npz, .pt, .onnx) or bot:chaser, bot:evader, bot:random."""
    game: Annotated[str | None, optional("PATH")] = None
    """A project folder, a .pck or an exported game, or tag; by default the game of the model's
    run."""
    preset: Annotated[SceneName | None, optional("NAME")] = None
    """A SpaceTime scene, as in `estragon train scene`, instead of --game."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play; by default that of the model's run, or the game's main scene."""
    episodes: int = 100
    """Number of episodes; rounded up so that all agents play as many."""
    output: Path = Path("evaluation.json")
    """The file to write."""
    seed: int = 1_000_000_007
    """Seed of the games: the same seed plays the same episodes; by default such as no training has
    seen."""
    success: str = "success"
    """The key of the game's info that is true at the end of a successful episode."""
    action_repeat: Annotated[int | None, optional("TICKS")] = None
    """Physics ticks per action; by default as in the model's run, or the game's own setting."""
    parameters: Annotated[Path | None, optional("FILE")] = None
    """A parameter file without a curriculum."""
    argument: tuple[str, ...] = ()
    """Further arguments of the game, each KEY=VALUE."""
    wire: Literal["tcp", "http"] = "tcp"
    """How to talk to the game, as in `estragon train sb3`."""
    n_parallel: int = 1
    """Number of game processes."""
    max_steps: int = 10_000_000
    """Stop after this many steps of all agents."""
    trust: bool = False
    """Load a model that Estragon did not write; loading it can run any code stored in it."""
    role: Literal["seeker", "hider"] = "seeker"
    """For tag: the role that the model plays."""
    opponent: Annotated[str | None, optional("PLAYER")] = None
    """For tag: the other player; by default bot:evader or bot:chaser."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """For tag: as in `estragon eval tag`."""
    rules: Annotated[str | None, optional("NAME")] = None
    """For tag: seek, transfer or hide."""
    rules_file: Annotated[Path | None, optional("FILE")] = None
    """For tag: a rules file to use instead of the game's own."""
    engine: Literal["embedded", "godot"] = "embedded"
    """For tag: where to play."""

    def run(self) -> None:
        """Play and write."""
        check_span("--episodes", self.episodes, 1, 1_000_000)
        check_span("--seed", self.seed, 0, 2**31 - 1)
        check_span("--max_steps", self.max_steps, 1)
        ensure_writable(self.output)
        from estragon.judge.evaluate import describe

        with counting("playing", " episodes") as report:
            result = self._tag(report) if self.game == TAG else self._game(report)
        result.write(self.output)
        print(describe(result))
        print(f"wrote {self.output}")

    def _tag(self, report: Any) -> Any:
        from estragon.judge.evaluate import evaluate_tag
        from estragon.tag.policy_files import DEFAULT_BOTS

        other = "hider" if self.role == "seeker" else "seeker"
        return evaluate_tag(
            self.model,
            self.opponent or DEFAULT_BOTS[other],
            self.role,
            self.episodes,
            rules_file=self.rules_file,
            rules_name=self.rules,
            engine=self.engine,
            layout=self.layout,
            seed=self.seed,
            report=report,
        )

    def _game(self, report: Any) -> Any:
        from estragon.judge.evaluate import evaluate_game
        from estragon.support.parameters import Plan
        from estragon.trainers.settings import use_one_thread

        plan = None if self.parameters is None else Plan.read(self.parameters)
        if plan is not None and len(plan.lessons) > 1:
            raise UserError(f"--parameters: {self.parameters} has a curriculum; expected none")
        use_one_thread()
        return evaluate_game(
            self.model,
            self._settings(),
            self.episodes,
            success_key=self.success,
            max_steps=self.max_steps,
            plan=plan,
            report=report,
        )

    def _settings(self) -> Any:
        from estragon.support import paths
        from estragon.trainers.players import game_of_run
        from estragon.trainers.sb3.settings import Sb3Settings

        run = game_of_run(self.model)
        arguments: dict[str, Any] = {}
        game: dict[str, Any] = {"env_path": self.game, "scene": self.scene}
        if self.preset is not None:
            if self.game is not None:
                raise UserError("--preset is a game of its own; leave out --game")
            preset = PRESETS[self.preset]
            game = {"env_path": str(paths.godot_project()), "scene": self.scene or preset.scene}
            arguments = {"parameter.rigs": preset.num_envs}
            arguments |= {"parameter.task": preset.task} if preset.task else {}
        elif self.game is None:
            if run.get("env_path") is None:
                raise UserError(f"{self.model} does not lie in a run's folder; give --game")
            game = {"env_path": run["env_path"], "scene": self.scene or run.get("scene")}
            arguments = dict(run.get("arguments") or {})
        for each in self.argument:
            key, equals, value = each.partition("=")
            if not equals or not key:
                raise UserError(f"--argument: expected KEY=VALUE, got '{each}'")
            arguments[key.removeprefix("--")] = value
        settings = Sb3Settings(
            **game,
            action_repeat=self.action_repeat or run.get("action_repeat"),
            arguments=arguments,
            wire=self.wire,
            n_parallel=self.n_parallel,
            seed=self.seed,
            trust=self.trust,
            inference=True,
            resume_model_path=Path(self.model),
        )
        settings.check()
        return settings
