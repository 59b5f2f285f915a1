"""Carrying plans out: create, apply, scale, delete, wait, and the proof at the end."""
