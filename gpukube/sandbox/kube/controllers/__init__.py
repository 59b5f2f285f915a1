"""Controllers and the scheduler."""
