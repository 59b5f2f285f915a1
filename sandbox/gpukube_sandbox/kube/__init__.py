"""Kubernetes clusters of the sandbox: an API on loopback, its controllers, and nodes with simulated GPUs.

Lives here: nothing; import the modules. `cluster` ties the room together.
"""
