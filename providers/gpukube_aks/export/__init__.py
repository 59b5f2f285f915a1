"""Exports AKS pools to other tools."""
