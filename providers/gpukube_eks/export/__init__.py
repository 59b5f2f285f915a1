"""Exports of EKS pools for other tools."""
