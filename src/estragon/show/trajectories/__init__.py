"""Logged matches: written while they are played, read back, and checked."""
