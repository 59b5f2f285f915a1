"""The permissions that gpukube needs, as policies of the clouds and as Kubernetes RBAC of the clusters."""
