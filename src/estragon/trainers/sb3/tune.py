"""`estragon tune`: search for the hyper-parameters that a game is learned best with."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from estragon.support.errors import INTERRUPTED, UserError
from estragon.support.files import ensure_writable, write_json, write_whole
from estragon.support.options import optional
from estragon.trainers.controller import slug
from estragon.trainers.sb3.settings import (
    AlgorithmName,
    Hyperparameters,
    PolicyType,
    Sb3Settings,
)
from estragon.trainers.settings import Device

if TYPE_CHECKING:
    import optuna

SHOWN = 10


@dataclasses.dataclass(frozen=True)
class Tune:
    """Try hyper-parameters with Optuna; trials that do badly are ended early.

    The study is in a file: the same command goes on with it, and several at once share it.
    """

    env_path: Annotated[str | None, optional("PATH")] = None
    """A project folder, a .pck or an exported game."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play; else the game's main scene."""
    algo: AlgorithmName = "ppo"
    """The algorithm."""
    policy_type: PolicyType = "mlp"
    """As in `estragon train sb3`."""
    policy_layers: tuple[int, ...] = (64, 64)
    """How many neurons the layers have."""
    trials: int = 30
    """How many to make now."""
    timesteps: int = 50_000
    """Steps of each."""
    slices: int = 10
    """How often in a trial it is looked at, and may be ended."""
    n_parallel: int = 1
    """Games side by side."""
    normalize: bool = False
    """Bring observations and rewards to a common size."""
    study_name: str = "study"
    """The study's files are in a folder of that name."""
    experiment_dir: Path = Path("logs/tune")
    """Where studies are."""
    seed: int = 0
    """Same seed, same trials."""
    device: Device = "auto"
    """As in `estragon train sb3`."""
    hyperparameters: tyro.conf.OmitArgPrefixes[Hyperparameters] = dataclasses.field(
        default_factory=Hyperparameters
    )

    def run(self) -> int:
        """Search, and report."""
        if self.trials < 1 or self.timesteps < 1 or self.slices < 1:
            raise UserError("expected at least 1 of --trials, --timesteps and --slices")
        import optuna
        from optuna.storages.journal import JournalFileBackend

        from estragon.trainers.sb3.trials import Trials

        folder = self.experiment_dir / slug(self.study_name)
        ensure_writable(folder / "study.log")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        backend = JournalFileBackend(str(folder / "study.log"))
        study = optuna.create_study(
            storage=optuna.storages.JournalStorage(backend),
            study_name=self.study_name,
            load_if_exists=True,
            direction="maximize",
            sampler=optuna.samplers.TPESampler(seed=self.seed),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=2),
        )
        self._check_same(study)
        finished = Trials(self).run(study)
        self._report(study, folder)
        return 0 if finished else INTERRUPTED

    def as_training(self) -> Sb3Settings:
        """A trial as a run of training."""
        return Sb3Settings(
            env_path=self.env_path,
            scene=self.scene,
            algo=self.algo,
            policy_type=self.policy_type,
            policy_layers=self.policy_layers,
            timesteps=self.timesteps,
            n_parallel=self.n_parallel,
            normalize=self.normalize,
            seed=self.seed,
            device=self.device,
            hyperparameters=self.hyperparameters,
        )

    def _check_same(self, study: "optuna.Study") -> None:
        """A study compares trials of one task; another task is another study."""
        task = {
            "game": f"{self.env_path} {self.scene or ''}".strip(),
            "algo": self.algo,
            "timesteps": self.timesteps,
            "given": self.hyperparameters.given(),
        }
        before = study.user_attrs.get("task", task)
        if before != task:
            raise UserError(
                f"study '{self.study_name}' is about {json.dumps(before)}; give another "
                "--study_name"
            )
        study.set_user_attr("task", task)

    def _report(self, study: "optuna.Study", folder: Path) -> None:
        done = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
        done.sort(key=lambda trial: -float(trial.value or 0.0))
        ended = sum(trial.state.name == "PRUNED" for trial in study.trials)
        lines = [
            f"# {self.study_name}: {self.algo}, {self.timesteps:,} steps a trial",
            "",
            f"{len(study.trials)} trials, {len(done)} to the end, {ended} ended early.",
            "",
        ]
        if done:
            names = sorted(done[0].params)
            lines += [f"| trial | reward | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|"]
            for trial in done[:SHOWN]:
                cells = [_short(trial.params.get(name)) for name in names]
                lines.append(f"| {trial.number} | {trial.value:.3f} | {' | '.join(cells)} |")
            lines += ["", "How much each of them matters:", ""]
            lines += [f"- {name}: {part:.0%}" for name, part in _importance(study).items()]
            best = {**self.hyperparameters.given(), **done[0].params}
            config = {f"sb3_{name}": value for name, value in best.items()}
            write_json(folder / "best.json", config)
            print(f"best: {done[0].value:.3f} with {_as_flags(best)}")
        write_whole(folder / "report.md", ("\n".join(lines) + "\n").encode())
        print(f"report: {folder / 'report.md'}", file=sys.stderr)


def _importance(study: "optuna.Study") -> dict[str, float]:
    import optuna

    try:
        return optuna.importance.get_param_importances(
            study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
        )
    except (RuntimeError, ValueError):
        return {}  # too few trials to tell


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _as_flags(values: dict[str, Any]) -> str:
    return " ".join(f"--{name} {_short(value)}" for name, value in values.items())
