"""What happens inside a Kubernetes cluster: its API, the Helm release of the device plugin, and the proof on its nodes.

Lives here: nothing; import the modules. `kube`, `sighting`, `helm*` and `apply` do I/O; `views`, `scheduling`,
`release`, `advertisers`, `nfd`, `plugin`, `rendered` and `verify*` are pure. No cloud SDK is known here.
"""
