"""One panel of a chart: curves over training, each named where it ends."""

from matplotlib.axes import Axes

from estragon.show.charts.curves import Curve
from estragon.show.charts.paper import FAINT, INK, LINE_WIDTH, EndLabel, label_ends

FEW = 10
"""So few numbers get a dot each."""


class Panel:
    """Axes with training along them."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self._labels: list[EndLabel] = []
        self._farthest = 0.0

    def draw(
        self, curve: Curve, label: str, colour: str, style: str = "-", *, pale: bool = False
    ) -> None:
        """A line with what surrounds it; pale where it is only background."""
        width, alpha = (1.6, 0.4) if pale else (LINE_WIDTH, 1.0)
        if curve.low is not None and curve.high is not None:
            shade = 0.1 if pale else 0.18
            self.axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=shade, lw=0)
        if curve.every is not None:
            style_of_noise = "." if curve.every.scattered else "-"
            (noise,) = self.axes.plot(curve.every.x, curve.every.y, style_of_noise, color=colour)
            noise.set(lw=0.8, alpha=0.12 if pale else 0.25, markersize=4.0, markeredgewidth=0.0)
        dot = 5.0 if curve.exact or len(curve.x) < FEW else 0.0
        (line,) = self.axes.plot(curve.x, curve.y, style, color=colour, lw=width, alpha=alpha)
        line.set(marker="o", markersize=dot, markeredgewidth=0.0, clip_on=not curve.exact)
        self._farthest = max(self._farthest, float(curve.x.max()))
        if label:
            opacity = 0.6 if pale else 1.0
            self._labels.append(EndLabel(float(curve.y[-1]), label, colour, opacity))

    def finish(self, *, title: str, x: str, y: str, frame: tuple[float, float]) -> None:
        """Show this span along y; name the axes, and the lines that have names."""
        self.axes.set_title(title, color=INK, fontsize=13, loc="left", pad=10)
        self.axes.set_xlabel(x, color=FAINT, fontsize=11, labelpad=8)
        self.axes.set_ylabel(y, color=FAINT, fontsize=11, labelpad=8)
        self.axes.set_ylim(*frame)
        if self._farthest > 0.0:
            self.axes.set_xlim(0.0, self._farthest)
        label_ends(self.axes, self._labels)
