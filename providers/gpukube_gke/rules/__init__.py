"""Reports what GKE rejects or misreads, before any call. Pure."""
