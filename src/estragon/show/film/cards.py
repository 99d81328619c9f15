"""What is written over the pictures of a film: title, cards, captions, verdicts and the clock."""

from estragon.show.drawing.palette import ROLES
from estragon.show.drawing.shape import WHITE
from estragon.show.film.curve import Frame, draw_curves
from estragon.show.film.facts import RunFacts, StageFacts, time_text
from estragon.show.film.layer import FAINT, INK, TRACK, Layer
from estragon.show.film.plan import Scene

EDGE = 16.0
"""Between panels and the edge of the frame."""
VERDICT_SIZE = 26.0
INSET_WIDTH, INSET_HEIGHT = 188.0, 158.0


def draw_title(layer: Layer, run: RunFacts) -> None:
    """The opening: who learns what, and for how long."""
    middle = layer.width / 2.0
    layer.panel(middle - 300.0, 175.0, middle + 300.0, 365.0)
    layer.write(middle, 240.0, "Learning to play tag", 42.0, INK, anchor="ms", weight=0.7)
    last = run.last
    spent = "" if last.training_sec is None else f" in {time_text(last.training_sec)}"
    text = f"{last.title} of {run.learned_by}{spent}" if last.agent_steps else last.subtitle
    layer.write(middle, 280.0, text, 20.0, INK, anchor="ms")
    texts = {role: f"the {role} {what}" for role, what in WANTS.items()}
    wide = sum(layer.wide(text, 15.0) for text in texts.values()) + 18.0 * 2.0 + 34.0
    left = middle - wide / 2.0
    for role, text in texts.items():
        layer.cube(left + 5.5, 323.0, role)
        layer.write(left + 18.0, 328.0, text, 15.0, FAINT)
        left += 18.0 + layer.wide(text, 15.0) + 34.0


WANTS = {"seeker": "wants to touch the other", "hider": "wants to be left alone"}


def draw_stage_card(layer: Layer, run: RunFacts, scene: Scene, agent_steps: float) -> None:
    """A stage introduced: when it was, how strong it is, and the curve up to some moment."""
    middle, facts = layer.width / 2.0, scene.facts
    left, right = middle - 352.0, middle + 352.0
    layer.panel(left, 108.0, right, 432.0)
    left += 32.0
    layer.write(left, 164.0, facts.title, 36.0, INK, weight=0.6)
    layer.write(left, 190.0, facts.subtitle, 16.0, FAINT)
    top = 232.0
    for role in ROLES:
        top = _strength(layer, left, top, role, facts)
    layer.write(left, 414.0, scene.chosen, 13.0, FAINT)
    if run.curves:
        frame = Frame(right - 322.0, 128.0, right - 14.0, 382.0)
        draw_curves(layer, frame, run.curves, agent_steps)


def _strength(layer: Layer, left: float, top: float, role: str, facts: StageFacts) -> float:
    """The numbers of one role; returns where to go on."""
    rates = {
        name.removeprefix(f"{role}_vs_"): rate
        for name, rate in facts.win_rates.items()
        if name.startswith(f"{role}_vs_")
    }
    if not rates:
        return top
    layer.cube(left + 7.0, top - 6.0, role, 14.0)
    layer.write(left + 22.0, top, role, 18.0, INK, weight=0.4)
    if role in facts.elo:
        layer.write(left + 300.0, top, f"Elo {facts.elo[role]:.0f}", 18.0, INK, anchor="rs")
    for row, (bot, rate) in enumerate(rates.items(), start=1):
        baseline = top + 22.0 * row
        layer.write(left + 22.0, baseline, f"beats bot:{bot}", 15.0, FAINT)
        layer.write(left + 300.0, baseline, f"{rate:.0%}", 15.0, INK, anchor="rs")
    return top + 22.0 * len(rates) + 36.0


def draw_caption(layer: Layer, run: RunFacts, scene: Scene) -> None:
    """What stays in sight during a match: the stage, the curve, and how the match was chosen."""
    facts = scene.facts
    wide = max(layer.wide(facts.title, 22.0), layer.wide(facts.subtitle, 12.5))
    layer.panel(EDGE, EDGE, EDGE + wide + 26.0, EDGE + 56.0)
    layer.write(EDGE + 13.0, EDGE + 27.0, facts.title, 22.0, INK, weight=0.5)
    layer.write(EDGE + 13.0, EDGE + 46.0, facts.subtitle, 12.5, FAINT)
    bottom = layer.height - EDGE
    first, _, second = scene.chosen.partition("; ")
    wide = max(layer.wide(first, 12.0), layer.wide(second, 12.0))
    layer.panel(EDGE, bottom - 44.0, EDGE + wide + 24.0, bottom)
    layer.write(EDGE + 12.0, bottom - 26.0, first, 12.0, FAINT)
    layer.write(EDGE + 12.0, bottom - 10.0, second, 12.0, FAINT)
    if run.curves:
        right = layer.width - EDGE
        frame = Frame(right - INSET_WIDTH, bottom - INSET_HEIGHT, right, bottom)
        draw_curves(layer, frame, run.curves, facts.agent_steps)


def draw_clock(layer: Layer, left_sec: float, limit_sec: float) -> None:
    """How much of the match is left."""
    right = layer.width - EDGE
    left = right - 190.0
    layer.panel(left, EDGE, right, EDGE + 34.0)
    start, end, middle = left + 14.0, right - 76.0, EDGE + 17.0
    until = start + max(6.0, (end - start) * left_sec / limit_sec)
    layer.pill(start, middle - 3.0, end, middle + 3.0, TRACK)
    layer.pill(start, middle - 3.0, until, middle + 3.0, INK)
    layer.write(right - 12.0, middle + 5.0, f"{left_sec:.1f} s left", 14.0, INK, anchor="rs")


def draw_verdict(layer: Layer, scene: Scene) -> None:
    """How the match ended, in the colour of who won; not where it happened."""
    colour = ROLES[scene.winner] if scene.winner else INK
    top = layer.height - 58.0 - 2.0 * VERDICT_SIZE if scene.ends_above else 58.0
    _announce(layer, scene.verdict, top, VERDICT_SIZE, colour)


def draw_slow_mark(layer: Layer) -> None:
    """That time passes slowly now."""
    _announce(layer, "slow motion", EDGE, 14.0, INK)


def draw_end(layer: Layer, run: RunFacts) -> None:
    """The end: the whole curve, and how strong they became."""
    middle, facts = layer.width / 2.0, run.last
    left, right = middle - 410.0, middle + 410.0
    layer.panel(left, 66.0, right, 474.0)
    layer.write(left + 32.0, 124.0, facts.title, 34.0, weight=0.6)
    layer.write(left + 32.0, 150.0, facts.subtitle, 16.0, FAINT)
    top = 200.0
    for role in ROLES:
        top = _strength(layer, left + 32.0, top, role, facts)
    if run.seeker_wins is not None:
        text = f"against each other the seeker wins {run.seeker_wins:.0%}"
        layer.write(left + 32.0, top + 8.0, text, 16.0, INK)
    if run.curves:
        frame = Frame(right - 418.0, 84.0, right - 14.0, 456.0)
        draw_curves(layer, frame, run.curves, facts.agent_steps)


def _announce(
    layer: Layer, text: str, top: float, size: float, colour: str | tuple[int, int, int]
) -> None:
    middle, height = layer.width / 2.0, 2.0 * size
    wide = layer.wide(text, size) + 2.2 * size
    layer.pill(middle - wide / 2.0, top, middle + wide / 2.0, top + height, colour, 0.94)
    layer.write(middle, top + height / 2.0, text, size, WHITE, anchor="mm", weight=0.4)
