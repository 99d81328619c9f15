"""`estragon spacetime run`: a SpaceTime scene with its HTTP API, until Ctrl-C."""

import dataclasses
from pathlib import Path
from typing import Annotated

from estragon.spacetime.config import PORT, SCENE, RLConfig
from estragon.support.errors import UserError
from estragon.support.options import check_span, optional


@dataclasses.dataclass(frozen=True)
class SpacetimeRunCommand:
    """Run a SpaceTime scene with its HTTP API on 127.0.0.1, until Ctrl-C.

    Requests need the token in the environment variable API_TOKEN; if it is not set, one is made and
    printed.
    """

    scene: str = SCENE
    """The scene to run."""
    port: int = PORT
    """Port of the API; 0: any free port."""
    window: bool = False
    """Show the game in a window, where people can play it."""
    task: Annotated[str | None, optional("NAME")] = None
    """Task of vr_locomotion_test: goals, obstacles, maze or course."""
    model: Annotated[Path | None, optional("FILE")] = None
    """ONNX file of a trained policy that plays, without Python."""
    config: Annotated[Path | None, optional("FILE")] = None
    """Configuration of its training: kind and limits of the actions, distances, task."""
    seconds: Annotated[float | None, optional("SECONDS")] = None
    """Stop after this time; by default only Ctrl-C stops the game."""
    frames: Annotated[Path | None, optional("DIR")] = None
    """Instead of serving HTTP, draw --seconds of the game into PNG files in this folder; `estragon
    encode` makes a film of them."""
    fps: int = 15
    """Frames per second of the game, with --frames."""

    def run(self) -> int:
        """Serve."""
        check_span("--port", self.port, 0, 65_535)
        if self.model is not None and not self.model.is_file():
            raise UserError(f"--model {self.model}: no such file")
        from estragon.spacetime.serve import record_scene, serve

        parameters = RLConfig.from_json(self.config).constant_parameters() if self.config else {}
        if self.task is not None:
            parameters["task"] = self.task
        if self.frames is not None:
            if self.seconds is None:
                raise UserError("--frames needs --seconds, the length of the film")
            check_span("--seconds", self.seconds, 0.1, 3600.0)
            check_span("--fps", self.fps, 1, 90)
            count = record_scene(
                self.scene,
                self.frames,
                self.seconds,
                fps=self.fps,
                parameters=parameters,
                model=self.model,
            )
            print(f"{count} frames in {self.frames}; estragon encode --frames {self.frames}")
            return 0
        return serve(
            self.scene,
            self.port,
            window=self.window,
            seconds=self.seconds,
            parameters=parameters,
            model=self.model,
        )
