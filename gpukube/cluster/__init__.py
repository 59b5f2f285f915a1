"""Everything inside a Kubernetes cluster: its API, the Helm release of the device plugin, and the node checks.

In scope: the packages below; each may import those listed before it: `process` and `names`, `kube`, `state`, `helm`,
`release`, `proof`. Only the client in `kube`, the snapshot in `state`, and the code that runs Helm or changes a release
do I/O; views, judgments, plans, and values are pure. Nothing here knows a cloud SDK.
"""
