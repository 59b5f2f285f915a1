"""Reports what AKS rejects or misreads, before any call. Pure."""
