"""Kubernetes clusters of the sandbox: an API on loopback, its controllers, and nodes with simulated GPUs.

In scope: nothing; import the modules. `cluster` ties the room together.
"""
