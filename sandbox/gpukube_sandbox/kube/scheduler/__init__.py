"""Scheduling decisions: which nodes a pod fits, and why not the others. Pure functions."""
