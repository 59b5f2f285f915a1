"""The Kubernetes API over HTTP."""
