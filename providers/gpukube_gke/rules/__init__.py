"""What GKE refuses or misreads, found before any call. Pure."""
