"""Calls to GKE and related Google APIs: credentials, client, failures, prices."""
