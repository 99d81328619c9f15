"""Any Godot game that speaks the Godot RL Agents protocol, as an environment."""
