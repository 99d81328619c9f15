"""Training any Godot game with SB3 or RLlib: one run loop, settings, metrics, the controller."""
