"""GKE node pools: fields, requests, observation, changes. Pure."""
