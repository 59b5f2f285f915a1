"""Kubernetes clusters of the sandbox: an API on loopback, its controllers, and nodes with simulated GPUs.

Import the modules; `cluster` connects them.
"""
