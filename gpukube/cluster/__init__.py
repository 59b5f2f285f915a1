"""What happens inside a Kubernetes cluster: its API, the Helm release of the device plugin, and the proof on its nodes.

Lives here: nothing; import the modules. `kube*`, `sighting`, `release_objects`, `reclaim`, `repairing`, `draining`,
`helm*` and `keeper` do I/O; `views`, `scheduling`, `release_plan`, `drift`, `nodes_drift`, `advertisers`, `nfd`,
`plugin`, `operator`, `rendered` and `verify*` are pure. No cloud SDK is known here.
"""
