"""Checks live nodes against the promised devices: the count, and which step is missing if it is wrong."""
