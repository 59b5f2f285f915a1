"""Emulates EKS as AWS exposes it: clusters, managed node groups, launch templates, and related AWS services.

In scope: wire formats and service behavior of EKS, and of the few calls of EC2, STS, IAM, and Auto Scaling that node
groups need. Out of scope: a cluster's Kubernetes API (`gpukube_sandbox.kube`), and anything that would need an SDK.
"""
