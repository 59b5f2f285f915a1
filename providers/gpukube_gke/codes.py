"""Every code that a finding or an error of GKE can carry, with the sentence the documentation prints.

Lives here: the table, nothing else. Codes are stable: they may be added, never renamed or given a new meaning.
"""

from __future__ import annotations

from typing import Final

__all__ = ["CODES", "FAILURE_CODES"]

CODES: Final[dict[str, str]] = {
    "gke-name": "The pool's name is not one GKE takes.",
    "gke-zone": "A zone is not in the region of the cluster.",
    "gke-zones-divide": "GKE counts nodes per zone, and the zones do not divide a total.",
    "gke-node-count": "A pool cannot have so many nodes.",
    "gke-image": "GKE has no such node image, or not for this machine.",
    "gke-disk-size": "The node disk is too small.",
    "gke-disk-type": "GKE has no such disk type, or not for this machine.",
    "gke-mig-mixed": "GKE shows MIG instances as nvidia.com/gpu only.",
    "gke-mig-profile": "GKE cannot cut the GPU to this MIG profile.",
    "gke-fractional": "A machine with a part of a GPU cannot share it further.",
    "gke-renamed": "GKE shows shared GPUs as nvidia.com/gpu only.",
    "gke-clients": "GKE does not share one GPU among so many clients.",
    "gke-request-limit": "GKE refuses pods that ask for more than one share.",
    "gke-spot-price": "GKE takes no highest price for Spot machines.",
    "gke-label": "GKE keeps a node label for itself.",
    "gke-labels-length": "The node labels are too long together.",
    "gke-taint": "GKE adds a taint of this key by itself.",
    "gke-tag": "A tag is not one that Google Cloud takes as a label.",
    "gke-driver-owner": "The owner of the driver is not supported on GKE yet.",
    "gke-driverless": "Without GKE's device plugin its driver installation is never finished.",
    "gke-own-plugin": "MIG instances have to be counted by the plugin that takes the place of GKE's.",
    "gke-own-driver": "GKE installs no driver, so somebody else has to.",
    "gke-native-conflict": "A native field does not go with another, or with the rest of the pool.",
    "gke-native-managed": "A native field is one that gpukube sets from the spec.",
    "gke-native-refused": "A native field cannot be set.",
    "gke-native-unknown": "A node pool has no such field that gpukube knows.",
    "gke-native-value": "A native field has a value of the wrong kind.",
}
"""Findings in the spec (`rules`, `sharing_rules`, `counts`, `native`, `combinations`)."""

FAILURE_CODES: Final[dict[str, str]] = {
    "access": "Google Cloud refused the credentials.",
    "no-credentials": "No Google Cloud credentials were found.",
    "impersonation": "The service account of the spec cannot be impersonated.",
    "project": "The cluster is in another project than the spec names.",
    "permission": "The identity may not do this.",
    "api-disabled": "The Kubernetes Engine API is not enabled in the project.",
    "service-account": "The service account of the nodes is gone, or lacks permissions, or may not be used.",
    "sandbox-endpoint": "Sandbox mode would leave loopback.",
    "plain-http": "A token would go out unencrypted.",
    "loopback-server": "A real token would go to a port of this machine.",
    "kubeconfig": "A kubeconfig cannot be read or has no such context.",
    "kube-endpoint": "The cluster has no Kubernetes endpoint that can be used.",
    "autopilot": "The cluster is an Autopilot cluster, whose nodes are Google's.",
    "no-zone": "The cluster has no zone for the pool.",
    "capacity": "No such machine is free.",
    "zone-not-offered": "The GPU is not offered in the zone.",
    "quota": "A quota of the project is too small.",
    "busy": "Other operations run on the cluster or the pool.",
    "exists": "A pool of this name is there already.",
    "changed": "The pool changed since it was read.",
    "aborted": "The operation was cancelled.",
    "taint-twice": "GKE adds the GPU taint, and the request had it too.",
    "refused": "GKE refused the request.",
    "throttled": "Google Cloud throttles the requests.",
    "no-cluster": "There is no such cluster, pool or operation.",
    "pool-gone": "The pool went away while it was waited for.",
    "disk-key": "The key of the node disks cannot be used.",
    "failed": "An operation ended badly.",
    "unreachable": "The Google Cloud API cannot be reached.",
    "no-answer": "Google Cloud's answer was lost.",
    "bad-answer": "Google Cloud's answer makes no sense.",
    "cloud": "GKE refused the request.",
}
"""Errors of the live half (`meanings`, `failures`, `client`, `access`, `endpoint`)."""
