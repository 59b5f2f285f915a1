"""Exports GKE pools to other tools."""
