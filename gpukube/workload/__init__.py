"""Workloads on the pools of a spec: manifests written, checked and fitted. Pure: texts and values in, values out."""
