"""Plays any game until it breaks: explorers, oracles, and a short trace of each bug."""
