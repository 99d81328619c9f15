"""Ray RLlib on any Godot game, on one machine or on many."""
