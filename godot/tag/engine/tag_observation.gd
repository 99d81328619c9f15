class_name TagObservation
extends RefCounted
## Where each field of an observation begins; rules.json says how they are laid out.

## Numbers per ray: distance, is_wall, is_agent.
const RAY_CHANNELS: int = 3

static var position: int = TagRules.field("position")
static var velocity: int = TagRules.field("velocity")
static var forward: int = TagRules.field("forward")
static var is_seeker: int = TagRules.field("is_seeker")
static var is_hider: int = TagRules.field("is_hider")
static var on_floor: int = TagRules.field("on_floor")
static var immune: int = TagRules.field("immune")
static var time_left: int = TagRules.field("time_left")
static var opponent_visible: int = TagRules.field("opponent_visible")
static var last_seen_relative: int = TagRules.field("last_seen_relative")
static var last_seen_age: int = TagRules.field("last_seen_age")
static var rays: int = TagRules.field("rays")
