"""Promised devices against live nodes: the number, and which step is missing when it is wrong."""
