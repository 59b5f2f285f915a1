"""Access to one Kubernetes API: the client, its limits and errors, and the values it reads."""
