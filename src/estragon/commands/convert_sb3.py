"""`estragon convert sb3`: a model's policy as an ONNX file for games."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from estragon.support.files import ensure_writable
from estragon.support.options import optional
from estragon.trainers.sb3.settings import AlgorithmName

if TYPE_CHECKING:
    from estragon.trainers.sb3.model_file import ModelFile


@dataclasses.dataclass(frozen=True)
class ConvertSb3:
    """Write the policy of a Stable-Baselines3 model as ONNX, after comparing both."""

    model_path: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="MODEL_PATH")]]
    """The .zip of the model."""
    output: Annotated[
        Path | None,
        tyro.conf.arg(aliases=["-o"], metavar="PATH", help_behavior_hint="(optional)"),
    ] = None
    """The .onnx to write; by default beside the model."""
    algo: Annotated[AlgorithmName | None, optional("NAME")] = None
    """The algorithm; found out if not given."""
    opset: int = 13
    """The version of ONNX's operators, 9 to 17."""
    ir_version: int = 9
    """The version of the file format."""
    verify: bool = True
    """Compare what the file and the model do, before it is written."""
    use_obs_array: bool = False
    """Take all observations as one input `obs`, side by side, instead of an input for each."""

    def run(self) -> int:
        """Convert."""
        from estragon.trainers.sb3.model_file import ModelFile
        from estragon.trainers.sb3.onnx_export import export

        source = ModelFile(self.model_path, self.algo)
        target = self.output or source.path.with_suffix(".onnx")
        target = target if target.suffix else target.with_suffix(".onnx")
        ensure_writable(target)
        export(
            _model_of(source),
            source.algorithm.name,
            target,
            scales=source.scales,
            opset=self.opset,
            ir_version=self.ir_version,
            as_array=self.use_obs_array,
            verify=self.verify,
        )
        compared = "does what the model does" if self.verify else "not compared with the model"
        print(f"{target}: {source.algorithm.name}, {compared}")
        return 0


def _model_of(source: "ModelFile") -> Any:
    from estragon.trainers.sb3.algorithms import Plan
    from estragon.trainers.sb3.settings import Hyperparameters
    from estragon.trainers.spaces import from_plain

    about = source.about
    if about is None:
        return source.unpickle(None, "cpu", {})
    plan = Plan(
        source.algorithm,
        Hyperparameters().over(about.hyperparameters),
        about.policy_type,
        about.layers,
    )
    sees: Any = from_plain(about.sees)
    model = plan.model_without_games(sees, from_plain(about.does))
    source.restore(model)
    return model
