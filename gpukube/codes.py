"""Every code of an error or warning outside the spec room and the providers, with the sentence docs/codes.md prints.

Lives here: the tables, by what the code is about, and nothing else. Codes of the spec are in `gpukube.spec.codes`, a
provider's own in its package. Codes are stable: they may be added, never renamed or given a new meaning.
"""

from __future__ import annotations

from typing import Final

GPUS: Final[dict[str, str]] = {
    "gpu-model": "The catalog has no GPU with this name, or several.",
    "instance-type": "The catalog has no such GPU instance type of the cloud.",
    "instance-type-refused": "The instance type is retired, or gpukube does not support its GPUs.",
    "no-machine": "The cloud has no instance type with this number of GPUs of the model.",
    "mig-capable": "The GPU or the instance type does not support MIG.",
    "mig-profile": "The GPU has no such MIG profile.",
    "mig-layout": "One GPU cannot hold these MIG instances together.",
    "mps-with-mig": "MPS on MIG: NVIDIA's plugin refuses it, Google's allows it.",
    "sharing-replicas": "A GPU cannot have this number of replicas.",
}
"""What the GPU catalog refuses (`gpukube.gpu`)."""

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

WORKLOADS: Final[dict[str, str]] = {
    "no-manifest": "No file has a Kubernetes object.",
    "gpu-request-only": "A GPU is requested without a limit.",
    "gpu-request-differs": "Request and limit of a GPU differ.",
    "gpu-fraction": "The number of GPUs is not a whole number.",
    "gpu-name-unqualified": "The name of the GPU resource has no prefix, or a wrong one.",
    "gpu-misplaced": "Resources are not under limits or requests, or those are not under resources.",
    "gpu-pod-level": "A GPU is among the resources of the whole pod.",
    "gpu-in-containers": "Several containers of a pod request GPUs.",
    "gpu-init-larger": "An init container requests more GPUs than the containers after it.",
    "gpu-zero": "A container requests no GPU by name.",
    "gpu-name-retired": "The GPU resource has its name from before device plugins.",
    "gpu-without-cpu": "A container requests a GPU, and no cpu or no memory.",
    "gpu-quota-name": "A ResourceQuota names GPUs in a way that counts nothing.",
    "ray-value-type": "A value of KubeRay that must be a string is a number or a boolean.",
    "ray-resources-twice": "A group has logical resources in two places.",
    "ray-autoscaler-blind": "Ray's autoscaler does not count the GPUs of a group.",
    "ray-operator-blind": "KubeRay does not count the GPUs of a group.",
    "ray-container-order": "A container that does not run Ray requests the GPU.",
    "ray-gpu-count": "Ray counts more GPUs than the container has.",
    "ray-gpu-names": "The Ray container requests GPUs by several names.",
    "ray-resource-key": "A logical resource is not spelled as Ray's autoscaler reads it.",
    "ray-no-cpu": "Ray's autoscaler finds no number of processors.",
    "ray-endless": "A group with GPUs has no maximum.",
    "ray-bounds": "The bounds of a group contradict each other.",
    "ray-never-starts": "A group with GPUs has no pod, and nothing adds one.",
    "gpu-visible-without-request": "A container with a CUDA image may see all GPUs of its node.",
    "gpu-visible-devices": "A container that requests a GPU sets the variable that the device plugin sets.",
    "ray-image": "An image of Ray is outdated, unversioned, or has no CUDA.",
    "cuda-image-latest": "The image nvidia/cuda has no version.",
    "ray-version-old": "The version of KubeRay's API is deprecated.",
    "ray-job-keeps-gpus": "A RayJob keeps its GPUs when it has ended.",
    "ray-autoscaler-version": "A field of a group needs version 2 of Ray's autoscaler.",
    "ray-name": "A name is too long, not allowed, or used twice.",
    "ray-head-gpu": "The head of a Ray cluster requests a GPU.",
    "ray-version-differs": "Image and rayVersion have different versions of Ray.",
    "ignore-rule": "A comment or annotation ignores a rule that does not exist.",
    "ignore-unused": "A comment or annotation ignores what is not there.",
    "ignore-reason": "A comment or annotation ignores a rule without a reason.",
}
"""What `workload lint` finds in manifests (`gpukube.workload.lint`)."""

LIVE_POOLS: Final[dict[str, str]] = {
    "foreign-pool": "A live pool with this name has another owner, or none.",
    "foreign-copy": "The labels of a pool with this name were replaced, and its tags name another owner or pool.",
    "lost-marks": "The ownership labels of a pool were replaced; only its tags have the copy.",
    "two-pools": "Two live pools have the labels of one pool: an unfinished replacement.",
    "refused-change": "A field differs from the live pool and cannot be changed.",
    "cluster-not-ready": "The cluster is stopped or busy.",
    "no-pool": "No live pool has the name, and the spec does not declare it.",
    "not-ours": "The pool to delete has another owner, or none.",
    "protected": "The pool to delete or replace is protected.",
    "moved": "Somebody changed the pool after it was planned; nothing was overwritten.",
    "no-effect": "The cloud accepted every call of an update, but the pool still differs.",
    "not-there": "A pool to scale or to wait for does not exist, or has another owner.",
    "needs-replace": "A field cannot change on a live pool, and --replace was not given.",
    "needs-disruption": "A change disturbs running pods, and --allow-disruption was not given.",
    "adopt-differs": "A pool to adopt differs from the spec; it gets the labels, and a later apply changes the rest.",
    "adopt-not-ready": "A pool to adopt is being changed or deleted, or failed: it cannot be adopted now.",
    "pool-ails": "A pool is usable, but the cloud reports a problem with it.",
    "failed-with-nodes": "A failed pool has live nodes, so it is not replaced without a flag.",
}
"""What stands against a change of live pools."""

CLUSTERS: Final[dict[str, str]] = {
    "cluster-unreachable": "The Kubernetes API cannot be reached.",
    "cluster-timeout": "The Kubernetes API did not answer in time.",
    "cluster-answer": "The Kubernetes API answered with an error.",
    "not-kubernetes": "The answer is not from a Kubernetes API.",
    "kubeconfig": "A kubeconfig cannot be read or has no such context.",
    "kube-credentials": "The credentials of a kubeconfig are not available.",
    "kube-unauthorized": "The Kubernetes API does not accept the credentials.",
    "kube-forbidden": "The Kubernetes API denies the request.",
    "probe-permissions": "A probe lacks permissions in the cluster.",
    "kube-permissions": "The identity lacks permissions in the cluster.",
    "foreign-advertiser": "Something else in the cluster could advertise GPUs on the nodes of a pool.",
    "nfd-taint": "The cluster's node-feature-discovery does not tolerate the taints of a pool.",
    "reach": "Pods that the devices of a pool need cannot run on its nodes.",
    "reach-features": "The pods that write feature labels cannot run on the nodes of a pool.",
    "operator-nfd": "The GPU Operator waits for a node-feature-discovery that does not tolerate the taints of a pool.",
    "operator-driver": "The GPU Operator installs the driver on all its nodes or on none, for one operating system.",
    "operator-strays": "The GPU Operator would also serve nodes outside its pools.",
    "release-migration": "The cluster has gpukube's other release: the device-plugin chart, or the GPU Operator.",
}
"""What the Kubernetes API of a cluster says, and what was found in it."""

HELM: Final[dict[str, str]] = {
    "missing-helm": "There is neither a helm command nor the embedded Helm.",
    "helm-old": "The helm command is older than what is needed.",
    "helm-timeout": "Helm timed out.",
    "helm-crash": "The embedded Helm ended without an answer.",
    "helm-field-conflict": "An object of the release was edited by hand.",
    "helm-ownership": "An object of the chart exists already and belongs to something else.",
    "release-busy": "Another Helm run is changing the release.",
    "release-moved": "Another run changed the release at the same moment.",
    "release-open": "Helm changed the release but could not record it.",
    "chart-not-found": "The chart was not found.",
    "no-chart-version": "The chart's repository has no such version.",
    "chart-digest": "The chart is not what its publisher published, or what the cluster got before.",
    "chart-dependency": "The chart directory lacks its dependency.",
    "chart-values": "The chart, or the Kubernetes API, refuses the values.",
    "chart-rendered": "The rendered chart is not what gpukube expects.",
}
"""The device-plugin release: getting the chart, running Helm."""

STEPS: Final[dict[str, str]] = {
    "unproven": "The nodes of a pool differ from the spec.",
    "step-node": "Nodes of the pool are not in the cluster yet.",
    "step-ready": "A node is not Ready.",
    "step-advertiser-label": "A node lacks the label that the release's affinity asks for.",
    "step-config-label": "A node lacks the label that chooses its plugin configuration, or it names another one.",
    "step-config-entry": "The plugin configuration lacks the pool's entry, or the entry has other content.",
    "step-placement": "The plugin may not run on a node: a taint, a selector or an affinity keeps it away.",
    "step-driver": "The plugin finds no NVIDIA driver on a node, or no GPU.",
    "step-plugin-pod": "The plugin's pod on a node is missing, not ready, or crashes.",
    "step-features": "A node lacks feature labels that its pods need.",
    "step-geometry": "The GPUs of a node do not have the declared MIG layout.",
    "step-count": "A node has another number of devices than promised.",
    "step-stale-name": "A node still lists devices of a former sharing.",
    "step-probe": "A pod that requested one device did not see the promised one, or did not run.",
}
"""What `verify` says: the step that is missing on the way to the promised devices, in the order of the steps."""

COMMANDS: Final[dict[str, str]] = {
    "mig-question": "An argument of `catalog mig` cannot be read.",
    "no-file": "No spec given with -f, or no manifest.",
    "no-rule": "No rule has this number or name.",
    "output-format": "The command does not support the format after -o.",
    "confirmation": "A destructive command without a terminal needs --yes.",
    "address": "The value of --cluster is not a cluster address.",
    "owner-and-spec": "--owner is for commands without a spec.",
    "prune-filtered": "--prune cannot be combined with filters: pools they leave out would look undeclared.",
    "saved-plan-option": "An option would change a saved plan, which is applied as it is.",
    "init-missing": "Flags of `init` are missing, and there is no terminal to prompt on.",
    "init-flag": "A flag of `init` is for a cloud that --provider does not name.",
    "file-exists": "The output file already exists.",
    "no-field": "A spec has no such field, or several of that name.",
    "no-names": "`pool wait` is given neither a spec nor names of pools.",
    "no-size": "`pool scale` is given no size.",
    "fixed-size": "Bounds are given for a pool without autoscaling.",
    "autoscaled": "A count is given for a pool that the autoscaler sizes.",
    "sandbox-cluster": "The sandbox cannot make a cluster that the spec names.",
    "sandbox-world": "An entry of a world file for the sandbox is not one.",
    "sandbox-fault": "A fault for the sandbox names something that does not exist.",
    "sandbox-gone": "The shell has the variables of a sandbox that has stopped.",
    "no-catalogue": "No installed package has a catalog of this cloud.",
    "nothing-to-find": "`catalog find` is given neither a GPU nor a size of memory, or both.",
    "no-slice": "No GPU in the catalog has this much memory.",
    "memory": "The value is not an amount of memory.",
    "catalogue-cache": "The file of refreshed catalog data cannot be used; the embedded data is.",
    "catalogue-outdated": "Refreshed catalog data is older than the embedded table, which is used.",
    "workload-option": "A pool cannot do what `workload render` is asked for, or the option is not for this kind.",
    "defect": "A bug in gpukube.",
    "system": "The local machine refuses something: a full disk, a directory that cannot be written.",
}
"""The command line."""

CLASSES: Final[dict[str, str]] = {
    "error": "Anything else that went wrong.",
    "spec": "Anything else that is wrong in the spec or on the command line.",
    "access": "The credentials are missing, refused, or of another account than the spec's.",
    "capacity": "The cloud has no free machine of this type there.",
    "quota": "The account's quota does not allow more of these machines.",
    "timeout": "The deadline passed; the cloud keeps working, and the same command resumes.",
    "conflict": "Something has another owner, is busy, or changed at the same time.",
    "cloud-answer": "A cloud returned an empty answer about a cluster.",
    "cloud": "A cloud's API, or the sandbox, refused or failed.",
    "cluster": "Anything else that went wrong with the Kubernetes API of a cluster.",
    "helm": "Anything else that Helm refuses.",
    "stale-plan": "Something changed since the plan was saved.",
    "missing-extra": "A library is not installed; the fix names the extra that brings it.",
}
"""What an error carries that has no narrower code: one for each class of `gpukube.errors`."""
