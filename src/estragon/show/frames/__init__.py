"""Numbered pictures of a match, drawn by Godot, and MP4s made of them."""
