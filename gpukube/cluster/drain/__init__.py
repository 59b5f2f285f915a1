"""Draining nodes: which pods leave, what blocks them, which belong together; cordoning."""
