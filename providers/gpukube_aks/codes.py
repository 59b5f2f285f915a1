"""Every code that a finding or an error of AKS can carry, with the sentence the documentation prints.

Lives here: the table, nothing else. Codes are stable: they may be added, never renamed or given a new meaning.
"""

from __future__ import annotations

from typing import Final

__all__ = ["CODES", "FAILURE_CODES"]

CODES: Final[dict[str, str]] = {
    "aks-name": "The pool's name is not one AKS takes.",
    "aks-name-length": "The pool's name leaves no room for the suffix of a replacement.",
    "aks-node-count": "A pool cannot have so many nodes.",
    "aks-zone": "A zone is not written as Azure numbers them.",
    "aks-image": "AKS has no image families; osSKU is a native property.",
    "aks-disk-size": "The node disk is too small.",
    "aks-disk-type": "AKS has no such disk type.",
    "aks-mig-size": "AKS makes no MIG instances on this VM size.",
    "aks-mig-profile": "AKS cannot cut the GPU to this MIG profile.",
    "aks-mixed-from-zero": "An autoscaled pool of mixed MIG instances would never leave zero nodes.",
    "aks-renamed-from-zero": "An autoscaled pool with a renamed resource would never leave zero nodes.",
    "aks-shared-from-zero": "From zero nodes the autoscaler starts more nodes than shared GPUs need.",
    "aks-autoscaler-unready": "The autoscaler counts nodes without nvidia.com/gpu as unready.",
    "aks-eviction-policy": "An eviction policy is set on a pool that is not Spot.",
    "aks-spot-price": "The Spot price is not one AKS takes.",
    "aks-spot-floor": "The Spot price is so low that no node will ever come.",
    "aks-label": "AKS refuses a node label.",
    "aks-taint": "AKS refuses a taint.",
    "aks-taint-value": "A taint has no value.",
    "aks-taint-twice": "Two taints have one key.",
    "aks-tag": "A tag decides on the GPU driver behind the back of the pool.",
    "aks-driver-owner": "The owner of the driver is not supported on AKS yet.",
    "aks-managed": "AKS-managed GPU nodes exclude another feature of the pool.",
    "aks-managed-preview": "AKS-managed GPU nodes may need a preview feature of the subscription.",
    "aks-native-managed": "A native property is one that gpukube sets from the spec.",
    "aks-native-refused": "A native property cannot be set.",
    "aks-native-unknown": "An agent pool has no such property.",
    "aks-native-value": "A native property has a value of the wrong kind.",
}
"""Findings in the spec (`rules`, `native`)."""

FAILURE_CODES: Final[dict[str, str]] = {
    "access": "Azure refused the credentials.",
    "no-credentials": "No Azure credentials were found.",
    "subscription": "The subscription is not there, or not for this identity, or not the cluster's.",
    "tenant": "The tenant of the credentials or of the spec is not the cluster's.",
    "permission": "The identity may not do this.",
    "policy": "A policy of the organisation refuses the request.",
    "not-registered": "The subscription is not registered for AKS.",
    "sandbox-endpoint": "Sandbox mode would leave loopback.",
    "plain-http": "A token would go out over plain http.",
    "loopback-server": "A real token would go to a port of this machine.",
    "kubeconfig": "A kubeconfig cannot be read or has no such context.",
    "capacity": "No such machine is free.",
    "size-not-offered": "The subscription may not use the VM size in this region.",
    "zone-not-offered": "The VM size is not offered in the zone.",
    "quota": "A quota of the subscription is too small.",
    "busy": "Another operation runs on the cluster or the pool.",
    "preempted": "A later operation took over.",
    "canceled": "The operation was canceled.",
    "exists": "A pool of this name is there already.",
    "changed": "The pool changed since it was read.",
    "immutable": "A property cannot change on a live pool.",
    "node-auto-provisioning": "Node auto-provisioning excludes autoscaled pools.",
    "refused": "AKS refused the request.",
    "size-refused": "AKS does not accept the VM size.",
    "throttled": "Azure throttles the requests.",
    "no-resource-group": "There is no such resource group.",
    "no-cluster": "There is no such cluster or pool.",
    "pool-gone": "The pool went away while it was waited for.",
    "gpu-driver": "The GPU driver could not be installed on a node.",
    "node-bootstrap": "Nodes did not come up.",
    "subnet-full": "The subnet has too few addresses.",
    "failed": "An operation ended badly.",
    "unreachable": "The Azure API cannot be reached.",
    "no-answer": "Azure's answer was lost.",
    "bad-answer": "Azure's answer makes no sense.",
    "cloud": "Azure refused the request.",
}
"""Errors of the live half (`meanings`, `failures`, `client`, `access`, `endpoint`)."""
