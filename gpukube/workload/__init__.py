"""Workloads on the pools of a spec: manifests rendered, linted, and fitted. Pure: texts and values in, values out."""
