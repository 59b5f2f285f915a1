"""A pool in the terms of GKE: fields, requests, observation, changes. Pure."""
