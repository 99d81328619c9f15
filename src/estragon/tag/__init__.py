"""The tag game, embedded: the same rules and layouts as in Godot, thousands of arenas at once."""
