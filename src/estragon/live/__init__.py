"""Live training: Godot plays, Python answers and learns. docs/ws_protocol.md is its contract."""
