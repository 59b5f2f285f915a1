"""The emulated GKE over gRPC and REST."""
