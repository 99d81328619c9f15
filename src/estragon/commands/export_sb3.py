"""`estragon export sb3`: a model's policy as an ONNX file for games."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import tyro

from estragon.support.files import ensure_writable
from estragon.support.options import check_span, optional
from estragon.trainers.sb3.settings import AlgorithmName


@dataclasses.dataclass(frozen=True)
class ExportSb3Command:
    """Export the policy of a Stable-Baselines3 model as ONNX, and check that it acts the same."""

    model_path: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="MODEL_PATH")]]
    """The .zip of the model."""
    output: Annotated[
        Path | None,
        tyro.conf.arg(aliases=["-o"], metavar="PATH", help_behavior_hint="(optional)"),
    ] = None
    """The .onnx file to write; default: next to the model."""
    algo: Annotated[AlgorithmName | None, optional("NAME")] = None
    """The algorithm; default: detected."""
    opset: int = 13
    """ONNX operator set, 9 to 17."""
    ir_version: int = 9
    """ONNX file format version."""
    verify: bool = True
    """Compare the actions of the file and of the model on 1,224 observations before writing it."""
    use_obs_array: bool = False
    """Use a single input `obs` with all observations concatenated, instead of one input for
    each."""
    trust: bool = False
    """Unpickle a model that Estragon did not write, if it cannot be read without that; unpickling
    can run any code stored in it."""

    quantize: Annotated[Literal["int8"] | None, optional("int8")] = None
    """Also write <name>.int8.onnx, calibrated on what the policy sees in its game, and say what it
    costs and saves."""
    game: Annotated[str | None, optional("PATH")] = None
    """The game for --quantize; by default that of the model's run."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene for --quantize."""
    episodes: int = 100
    """Episodes for the returns of --quantize."""

    def run(self) -> int:
        """Convert."""
        from estragon.trainers.sb3.export import export
        from estragon.trainers.sb3.model_file import ModelFile

        source = ModelFile(self.model_path, self.algo, trust=self.trust, for_export=True)
        target = self.output or source.path.with_suffix(".onnx")
        target = target if target.suffix else target.with_suffix(".onnx")
        ensure_writable(target)
        settings = None
        if self.quantize is not None:
            check_span("--episodes", self.episodes, 1, 1_000_000)
            from estragon.trainers.players import game_settings

            settings = game_settings(str(source.path), self.game, scene=self.scene)
        export(
            source.load_for_export(),
            source.algorithm.name,
            target,
            normalization=source.normalization,
            opset=self.opset,
            ir_version=self.ir_version,
            as_array=self.use_obs_array,
            verify=self.verify,
        )
        compared = "acts like the model" if self.verify else "not compared with the model"
        print(f"{target}: {source.algorithm.name}, {compared}")
        if settings is not None:
            from estragon.trainers.smaller import quantize_in_game

            print(quantize_in_game(target, settings, self.episodes).describe())
        return 0
