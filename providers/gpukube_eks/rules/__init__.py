"""Rules that find what EKS rejects or misreads, before any call. Pure."""
