"""The Common Expression Language as Kubernetes uses it in selectors of devices. Pure functions."""
