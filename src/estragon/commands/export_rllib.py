"""`estragon export rllib`: the policies of a checkpoint as ONNX files for games."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import tyro

from estragon.support.errors import UserError
from estragon.support.files import ensure_writable
from estragon.support.options import check_span, optional


@dataclasses.dataclass(frozen=True)
class ExportRllibCommand:
    """Export the policies of an RLlib checkpoint as ONNX, and check that they act the same."""

    checkpoint_path: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="CHECKPOINT_PATH")]]
    """A checkpoint, or a run directory to use its latest checkpoint."""
    output_dir: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="PATH")] = Path(
        "onnx_exports"
    )
    """Output directory for <policy>.onnx."""
    policy: Annotated[str | None, optional("POLICY_ID")] = None
    """Export only this policy."""
    checkpoint_number: Annotated[int | None, optional("N")] = None
    """Which checkpoint of a run."""
    opset: int = 13
    """ONNX operator set, 9 to 17."""
    ir_version: int = 9
    """ONNX file format version."""
    verify: bool = True
    """Compare the actions of the file and of the policy on 1,224 observations before writing it."""
    trust: bool = False
    """Load a checkpoint that plain RLlib wrote; loading it can run any code stored in it."""

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
        from estragon.trainers.rllib.onnx_export import export_checkpoint
        from estragon.trainers.rllib.ray_session import be_quiet

        be_quiet()
        ensure_writable(self.output_dir / "policy.onnx")
        settings = None
        if self.quantize is not None:
            check_span("--episodes", self.episodes, 1, 1_000_000)
            from estragon.trainers.players import game_settings

            settings = game_settings(str(self.checkpoint_path), self.game, scene=self.scene)
        written = export_checkpoint(
            self.checkpoint_path,
            self.output_dir,
            policy=self.policy,
            number=self.checkpoint_number,
            opset=self.opset,
            ir_version=self.ir_version,
            verify=self.verify,
            trust=self.trust,
        )
        for path in written:
            print(f"{path}: {'acts like' if self.verify else 'not compared with'} the policy")
        if settings is not None:
            from estragon.trainers.smaller import quantize_in_game

            if len(written) > 1:
                raise UserError(
                    f"--quantize needs one policy that plays all agents, "
                    f"{self.checkpoint_path} has {len(written)}"
                )
            print(quantize_in_game(written[0], settings, self.episodes).describe())
        return 0
