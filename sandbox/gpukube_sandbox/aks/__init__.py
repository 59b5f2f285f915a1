"""AKS as ARM shows it: managed clusters, agent pools, their operations, rules and errors.

Lives here: wire formats and service behaviour of Microsoft.ContainerService. Must not live here: the Kubernetes API of
a cluster (`gpukube_sandbox.kube`) or anything an SDK would be needed for.
"""
