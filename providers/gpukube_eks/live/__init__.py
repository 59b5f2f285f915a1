"""Calls to EKS and related AWS APIs: credentials, client, failures, market."""
