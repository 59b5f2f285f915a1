"""Every code of an error or warning outside the spec room and the providers, with the sentence docs/codes.md prints.

Lives here: the tables, by what the code is about, and nothing else. Codes of the spec are in `gpukube.spec.codes`, a
provider's own in its package. Codes are stable: they may be added, never renamed or given a new meaning.
"""

from __future__ import annotations

from typing import Final

GPUS: Final[dict[str, str]] = {
    "gpu-model": "The catalogue has no GPU with this name, or several.",
    "instance-type": "The catalogue has no such GPU instance type of the cloud.",
    "instance-type-refused": "The instance type is retired, or gpukube does not support its GPUs.",
    "no-machine": "The cloud has no instance type with this number of GPUs of the model.",
    "mig-capable": "The GPU or the instance type does not support MIG.",
    "mig-profile": "The GPU has no such MIG profile.",
    "mig-layout": "One GPU cannot hold these MIG instances together.",
    "mps-with-mig": "MPS on MIG: NVIDIA's plugin refuses it, Google's allows it.",
    "sharing-replicas": "A GPU cannot have this number of replicas.",
}
"""What the GPU catalogue refuses (`gpukube.gpu`)."""

POOLS: Final[dict[str, str]] = {
    "missing-feature": "The cloud does not support a setting of the pool.",
    "gpu-and-type": "A pool has both gpu and instanceType, and they contradict each other.",
    "instance-status": "The instance type is of an older generation, in preview, or perhaps retired.",
    "owner": "No component, or two, would advertise the GPUs of a pool, or the requested one is not supported.",
    "autoscaler-misled": "While a pool is empty, the autoscaler expects other devices than its nodes will advertise.",
    "autoscaler-unready": "The autoscaler treats nodes without nvidia.com/gpu as not ready.",
    "mig-leftover": "The MIG profile leaves part of each GPU unused.",
    "shares-add": "A pod that requests 2 may get two shares of one GPU.",
    "sharing-isolation": "Pods that share a GPU by time-slicing or MPS are not isolated from each other.",
    "costly": "Expensive machines always run.",
    "chart-not-ours": "devicePlugin.version or values are set for a pool that no chart of gpukube serves.",
    "chart-version": "A version of the device plugin's chart is too old, or does not exist yet.",
    "chart-twice": "Pools of one cluster have different versions or values for its one release.",
    "chart-value-ours": "devicePlugin.values changes a value that gpukube sets.",
    "cluster-twice": "Two specs define one cluster key differently.",
    "cluster-unused": "A cluster of the spec has no pool.",
    "cluster-keys": "Two cluster keys name one cluster.",
    "operator-strategy": "The GPU Operator has one MIG strategy for all nodes, and the pools of a cluster need two.",
    "name-twice": "Two pools of specs loaded one by one would have one name on one cluster.",
    "no-provider": "No installed package supports the cloud of a cluster.",
    "silence-rule": "A silence does not name a rule.",
    "silence-error": "A silence names an error: only warnings and hints can be silenced.",
    "silence-unused": "A silence matches no finding.",
    "no-match": "--cluster or --pool matches nothing in the spec.",
}
"""What stands against pools on their clusters, before any call (`core.resolve`, `core.owners`, `engine.prepare`)."""

LIVE_POOLS: Final[dict[str, str]] = {
    "foreign-pool": "A pool of this name is live and belongs to somebody else.",
    "foreign-copy": "A pool of this name has lost its marks, and their copy in its tags names another owner or pool.",
    "lost-marks": "The labels of a pool lost the marks; only their copy in its tags has them.",
    "two-pools": "Two live pools carry the mark of one pool: a replacement was not finished.",
    "refused-change": "A field differs from the live pool and cannot be changed.",
    "cluster-not-ready": "The cloud says that the cluster is stopped or busy with itself.",
    "no-pool": "No live pool has the name, and no spec declares it.",
    "not-ours": "The pool to delete carries somebody else's mark, or none.",
    "protected": "The pool to delete or replace is protected against that.",
    "moved": "Somebody changed the pool after it was planned; nothing was overwritten.",
    "no-effect": "The cloud took every call of an update, and the pool still differs.",
    "not-there": "A pool to scale or to wait for is not there, or not ours.",
    "needs-replace": "A field cannot change on a live pool, and --replace was not given.",
    "needs-disruption": "A change disturbs running pods, and --allow-disruption was not given.",
    "adopt-differs": "A pool to adopt differs from the spec; it gets the marks, and a later apply changes the rest.",
    "adopt-not-ready": "A pool that nobody owns is being changed or deleted, or failed: it cannot be adopted now.",
    "pool-ails": "The cloud calls a pool usable and says that something is wrong with it.",
    "failed-with-nodes": "A pool that the cloud calls failed has live nodes, so it is not made again unasked.",
}
"""What stands against a change of live pools."""

CLUSTERS: Final[dict[str, str]] = {
    "cluster-unreachable": "The Kubernetes API cannot be reached.",
    "cluster-timeout": "The Kubernetes API did not answer in time.",
    "cluster-answer": "The Kubernetes API answered with an error.",
    "not-kubernetes": "What answers is not a Kubernetes API.",
    "kubeconfig": "A kubeconfig cannot be read or has no such context.",
    "kube-credentials": "The credentials that a kubeconfig names could not be had.",
    "kube-unauthorized": "The Kubernetes API does not accept our credentials.",
    "kube-forbidden": "The Kubernetes API does not allow us what was tried.",
    "probe-permissions": "Our identity lacks permissions in the cluster that a probe needs.",
    "kube-permissions": "Our identity lacks permissions in the cluster that a run will need.",
    "foreign-advertiser": "Something else in the cluster could advertise GPUs on the nodes of a pool.",
    "nfd-taint": "The node-feature-discovery that is there does not tolerate the taints of a pool.",
    "reach": "Pods that the devices of a pool depend on would not land on its nodes.",
    "reach-features": "The pods that write feature labels would not land on the nodes of a pool.",
    "operator-nfd": "The GPU Operator waits for a node-feature-discovery that does not tolerate the taints of a pool.",
    "operator-driver": "The GPU Operator brings the driver to all nodes that it serves or to none, for one system.",
    "operator-strays": "The GPU Operator would also take over nodes that no pool of it holds.",
    "release-migration": "The cluster has our other release: the device-plugin chart, or the GPU Operator.",
}
"""What the Kubernetes API of a cluster says, and what was found in it."""

HELM: Final[dict[str, str]] = {
    "missing-helm": "There is neither a helm command nor the embedded Helm.",
    "helm-old": "The helm command is older than what is needed.",
    "helm-timeout": "Helm did not end in time.",
    "helm-crash": "The embedded Helm ended without an answer.",
    "helm-field-conflict": "An object of the release was edited by hand.",
    "helm-ownership": "An object of the chart exists already and belongs to something else.",
    "release-busy": "Another Helm run is changing the release.",
    "release-moved": "Another run changed the release at the same moment.",
    "release-open": "Helm changed the release and could not write down that it did.",
    "chart-not-found": "The chart cannot be had.",
    "no-chart-version": "The chart's repository has no such version.",
    "chart-digest": "The chart is not what its publisher published, or what the cluster got before.",
    "chart-dependency": "The chart directory lacks its dependency.",
    "chart-values": "The chart, or the Kubernetes API, refuses the values.",
    "chart-rendered": "The chart renders something else than gpukube counts on.",
}
"""The device-plugin release: getting the chart, running Helm."""

STEPS: Final[dict[str, str]] = {
    "unproven": "The nodes of a pool do not show what was promised.",
    "step-node": "Nodes of the pool are not in the cluster yet.",
    "step-ready": "A node is not Ready.",
    "step-advertiser-label": "A node lacks the label that the release's affinity asks for.",
    "step-config-label": "A node lacks the label that chooses its plugin configuration, or it names another one.",
    "step-config-entry": "The plugin configuration lacks the pool's entry, or the entry says something else.",
    "step-placement": "The plugin may not run on a node: a taint, a selector or an affinity keeps it away.",
    "step-driver": "The plugin finds no NVIDIA driver on a node, or no GPU.",
    "step-plugin-pod": "The plugin's pod on a node is missing, not ready, or crashes.",
    "step-features": "A node lacks the feature labels that something on it waits for.",
    "step-geometry": "The GPUs of a node are not cut as declared.",
    "step-count": "A node shows another number of devices than promised.",
    "step-stale-name": "A node still shows devices under the name of a former sharing.",
    "step-probe": "A pod that asked for one device of the pool did not see what was promised, or did not run.",
}
"""What `verify` says: the step that is missing on the way to the promised devices, in the order of the steps."""

COMMANDS: Final[dict[str, str]] = {
    "mig-question": "What `catalog mig` is asked cannot be read.",
    "no-file": "No spec is given with -f.",
    "output-format": "The format after -o is not one that gpukube writes.",
    "confirmation": "What destroys needs --yes where there is no terminal to ask on.",
    "address": "What stands after --cluster is not the address of a cluster.",
    "owner-and-spec": "--owner is for commands without a spec.",
    "prune-filtered": "--prune does not go with filters: what they leave out would look undeclared.",
    "saved-plan-option": "An option would shape a saved plan, which is applied as it is.",
    "init-missing": "`init` is not told all that a spec needs, and there is no terminal to ask on.",
    "init-flag": "A flag of `init` is about a cloud that --provider does not name.",
    "file-exists": "A file to write is there already.",
    "no-field": "The format of specs has no such field, or several of that name.",
    "no-names": "`pool wait` is given neither a spec nor names of pools.",
    "no-size": "`pool scale` is given no size.",
    "fixed-size": "Bounds are given for a pool without autoscaling.",
    "autoscaled": "A count is given for a pool that the autoscaler sizes.",
    "sandbox-cluster": "The sandbox cannot make a cluster that the spec names.",
    "no-catalogue": "No installed package brings a catalogue of this cloud.",
    "nothing-to-find": "`catalog find` is given neither a GPU nor a size of memory, or both.",
    "no-slice": "No GPU of the catalogue has so much memory.",
    "memory": "What is given is no amount of memory.",
    "catalogue-cache": "The file of refreshed catalogue data cannot be used; the embedded data is.",
    "catalogue-outdated": "Refreshed catalogue data is older than the embedded table, which is used.",
    "defect": "gpukube itself went wrong.",
    "system": "The machine that gpukube runs on refuses something: a full disk, a place that cannot be written.",
}
"""The command line."""

CLASSES: Final[dict[str, str]] = {
    "error": "Anything else that went wrong.",
    "spec": "Anything else that is wrong in the spec or on the command line.",
    "access": "The credentials are missing, refused, or somebody else's than the spec names.",
    "capacity": "The cloud has no such machine at this place now.",
    "quota": "The account may not have more of these machines.",
    "timeout": "The deadline passed; the cloud keeps working, and the same command resumes.",
    "conflict": "Something is somebody else's, busy, or changed at the same moment.",
    "cloud-answer": "A cloud answered the read of a cluster with nothing in it.",
    "cloud": "A cloud's API, or the sandbox, refused or failed.",
    "cluster": "Anything else that went wrong with the Kubernetes API of a cluster.",
    "helm": "Anything else that Helm refuses.",
    "stale-plan": "What a saved plan saw is no longer there.",
    "missing-extra": "A library is not installed; the fix names the extra that brings it.",
}
"""What an error carries that has no narrower code: one for each class of `gpukube.errors`."""
