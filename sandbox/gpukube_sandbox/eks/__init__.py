"""EKS as AWS shows it: clusters, managed node groups, launch templates, and what else of AWS they need.

In scope: wire formats and service behavior of EKS, and of the few calls of EC2, STS, IAM and Auto Scaling that
belong to it. Out of scope: the Kubernetes API of a cluster (`gpukube_sandbox.kube`) or anything an SDK would be
needed for.
"""
