"""Calls of AKS and related APIs: credentials, client, failures, market."""
