"""The numbers the reference derives once, written from docs/physics.md alone."""

from dataclasses import dataclass
from typing import Any

from tests.tag.reference.arithmetic import cosine, radians, rounded, sine


@dataclass(frozen=True, slots=True)
class Constants:
    """The rules' numbers, and those the page derives from them."""

    size: float
    half: float
    skin: float
    speed: float
    jump_speed: float
    jump_threshold: float
    facing_dead_zone: float
    tick_sec: float
    fall_per_tick: float
    half_fall_per_tick: float
    speed_change_per_tick: float
    turn_cos: float
    turn_sin: float
    wall_x: float
    wall_z: float
    stop_x: float
    stop_z: float
    stop_floor: float
    step_tick_interval: int
    limit_ticks: int
    immunity_ticks: int
    head_start_ticks: int
    hearing: float
    tag_ends_episode: bool
    tag_reach: float
    spawn_separation: float
    eye_height: float
    range: float
    cone_edge_cos: float
    position_scale: float
    velocity_scale: float


def derive_constants(rules_json: dict[str, Any]) -> Constants:
    """The constants under the rule set in force."""
    physics, body, eyes = rules_json["physics"], rules_json["agent"], rules_json["eyes"]
    episode, scales = rules_json["episode"], rules_json["observation"]
    rule_set = rules_json["rule_sets"][rules_json["rules"]]
    ticks_per_second = physics["ticks_per_second"]
    head_start_ticks = rounded(rule_set["head_start_sec"] * ticks_per_second)
    tick_sec = 1 / ticks_per_second
    fall_per_tick = physics["gravity_mps2"] * tick_sec
    half = body["size_m"] * 0.5
    skin = float(physics["skin_m"])
    turn = radians(body["turn_rate_deg_per_sec"]) * tick_sec
    wall_x = rules_json["arena"]["width_m"] * 0.5
    wall_z = rules_json["arena"]["depth_m"] * 0.5
    return Constants(
        size=float(body["size_m"]),
        half=half,
        skin=skin,
        speed=float(body["speed_mps"]),
        jump_speed=float(body["jump_speed_mps"]),
        jump_threshold=float(body["jump_threshold"]),
        facing_dead_zone=float(body["facing_dead_zone"]),
        tick_sec=tick_sec,
        fall_per_tick=fall_per_tick,
        half_fall_per_tick=fall_per_tick * 0.5,
        speed_change_per_tick=body["acceleration_mps2"] * tick_sec,
        turn_cos=cosine(turn),
        turn_sin=sine(turn),
        wall_x=wall_x,
        wall_z=wall_z,
        stop_x=wall_x - half - skin,
        stop_z=wall_z - half - skin,
        stop_floor=half + skin,
        step_tick_interval=int(episode["step_tick_interval"]),
        limit_ticks=rounded(episode["time_limit_sec"] * ticks_per_second) + head_start_ticks,
        head_start_ticks=head_start_ticks,
        hearing=float(rule_set["hearing_m"]),
        immunity_ticks=rounded(rule_set["immunity_sec"] * ticks_per_second),
        tag_ends_episode=bool(rule_set["tag_ends_episode"]),
        tag_reach=float(episode["tag_reach_m"]),
        spawn_separation=float(episode["spawn_separation_m"]),
        eye_height=float(eyes["height_m"]),
        range=float(eyes["range_m"]),
        cone_edge_cos=cosine(radians(eyes["cone_deg"]) * 0.5),
        position_scale=float(scales["position_scale_m"]),
        velocity_scale=float(scales["velocity_scale_mps"]),
    )


def derive_fan(eyes: dict[str, Any]) -> list[tuple[float, float]]:
    """The cosine and sine of every ray's angle from straight ahead."""
    n = int(eyes["rays"])
    if n == 1:
        return [(cosine(0.0), sine(0.0))]
    angles = [radians(eyes["cone_deg"]) * (k / (n - 1) - 0.5) for k in range(n)]
    return [(cosine(angle), sine(angle)) for angle in angles]


@dataclass(frozen=True, slots=True)
class Span:
    """What a box takes up on one axis."""

    low: float
    high: float
    grown_low: float
    grown_high: float
    stop_low: float
    stop_high: float
    middle: float


Box = tuple[Span, Span, Span]


def make_span(low: float, high: float, half: float, skin: float) -> Span:
    """A box's span between two faces."""
    return Span(
        low=low,
        high=high,
        grown_low=low - half,
        grown_high=high + half,
        stop_low=low - half - skin,
        stop_high=high + half + skin,
        middle=(low + high) * 0.5,
    )


def make_boxes(layout: dict[str, Any], half: float, skin: float) -> list[Box]:
    """A layout's boxes in file order."""
    boxes = []
    for box in layout["boxes"]:
        x, z = box["at_m"]
        w, h, d = box["size_m"]
        spans = (
            make_span(x - w * 0.5, x + w * 0.5, half, skin),
            make_span(0.0, float(h), half, skin),
            make_span(z - d * 0.5, z + d * 0.5, half, skin),
        )
        boxes.append(spans)
    return boxes
