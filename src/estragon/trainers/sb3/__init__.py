"""Stable-Baselines3 and sb3-contrib over any Godot game."""
