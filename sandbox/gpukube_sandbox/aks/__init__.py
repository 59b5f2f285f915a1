"""Emulates AKS as ARM exposes it: managed clusters, agent pools, their operations, rules, and errors.

In scope: wire formats and service behavior of Microsoft.ContainerService. Out of scope: a cluster's Kubernetes API
(`gpukube_sandbox.kube`), and anything that would need an SDK.
"""
