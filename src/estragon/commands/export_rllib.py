"""`estragon export rllib`: the policies of a checkpoint as ONNX files for games."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from estragon.support.files import ensure_writable
from estragon.support.options import optional


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

    def run(self) -> int:
        """Convert."""
        from estragon.trainers.rllib.onnx_export import export_checkpoint
        from estragon.trainers.rllib.ray_session import be_quiet

        be_quiet()
        ensure_writable(self.output_dir / "policy.onnx")
        for path in export_checkpoint(
            self.checkpoint_path,
            self.output_dir,
            policy=self.policy,
            number=self.checkpoint_number,
            opset=self.opset,
            ir_version=self.ir_version,
            verify=self.verify,
            trust=self.trust,
        ):
            print(f"{path}: {'acts like' if self.verify else 'not compared with'} the policy")
        return 0
