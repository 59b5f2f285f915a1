"""Calls of AKS and the APIs beside it: credentials, client, failures, market."""
