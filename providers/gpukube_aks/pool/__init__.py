"""A pool in the terms of AKS: fields, requests, observation, changes. Pure."""
