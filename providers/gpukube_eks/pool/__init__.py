"""Pools as EKS node groups: fields, requests, observation, changes. Pure."""
