"""The emulated GKE over gRPC and REST: names, answers, tokens."""
