"""Other people's trainers over any Godot game, and what they all share with the controller."""
