"""Renders manifests for a workload on a pool, with comments where clouds and sharing modes differ. Pure."""
