"""The checks, one family per module."""
