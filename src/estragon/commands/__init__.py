"""Whole jobs that span several rooms: what a person asks for in one command."""
