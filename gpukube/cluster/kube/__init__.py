"""Talking to one Kubernetes API: the client, its limits and failures, and what it reads as values."""
