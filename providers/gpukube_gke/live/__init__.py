"""Calls of GKE and the APIs beside it: credentials, client, failures, market."""
