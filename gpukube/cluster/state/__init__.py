"""The current state of a cluster, read once: who advertises devices, which pods reach which nodes, and drift."""
