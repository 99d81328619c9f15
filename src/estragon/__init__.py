"""Train, watch, test and ship game-playing agents for Godot 4, from Python."""

__version__ = "0.1.0"
