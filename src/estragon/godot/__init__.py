"""The real engine: finding or installing Godot 4, starting it, and never losing sight of it."""
