"""A pool in the terms of EKS: fields, requests, observation, changes. Pure."""
