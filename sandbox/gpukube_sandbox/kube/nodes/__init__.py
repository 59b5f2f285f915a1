"""Simulated machines, their kubelets, and the programs of the NVIDIA stack on them."""
