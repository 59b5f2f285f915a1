"""A pool in AKS's terms: fields, requests, observation, changes. Pure."""
