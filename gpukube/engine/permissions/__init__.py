"""What gpukube may need to do, as policies: of the clouds, and of the clusters' Kubernetes RBAC."""
