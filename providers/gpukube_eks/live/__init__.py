"""Calls of EKS and the APIs beside it: credentials, client, failures, market."""
