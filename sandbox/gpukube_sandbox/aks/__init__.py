"""AKS as ARM shows it: managed clusters, agent pools, their operations, rules and errors.

In scope: wire formats and service behavior of Microsoft.ContainerService. Out of scope: the Kubernetes API of
a cluster (`gpukube_sandbox.kube`) or anything an SDK would be needed for.
"""
