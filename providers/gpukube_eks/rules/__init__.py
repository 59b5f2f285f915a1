"""What EKS refuses or misreads, found before any call. Pure."""
