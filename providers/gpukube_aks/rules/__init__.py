"""What AKS refuses or misreads, found before any call. Pure."""
