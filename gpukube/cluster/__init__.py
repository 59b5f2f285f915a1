"""What happens inside a Kubernetes cluster: its API, the Helm release of the device plugin, and the proof on its nodes.

In scope: the wings, each of which may use those named before it: `process` and `names`, `kube`, `state`, `helm`,
`release`, `proof`. Of `kube` the client, of `state` the snapshot, and what runs Helm or changes a release do I/O; the
views, judgements, plans and values are pure. No cloud SDK is known here.
"""
