"""Converts texts to validated specs, and reports what is invalid."""
