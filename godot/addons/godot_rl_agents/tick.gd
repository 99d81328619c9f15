## Where in the physics tick the game is.

## Whether the game's scripts run. While Godot reports contacts (signals such as body_entered) they
## do not, and the physics space must not be queried: sensors then give what they saw last.
static var in_scripts: bool = true
