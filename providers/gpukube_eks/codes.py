"""Every code that a finding or an error of EKS can carry, with the sentence the documentation prints.

Lives here: the table, nothing else. Codes are stable: they may be added, never renamed or given a new meaning.
"""

from __future__ import annotations

from typing import Final

__all__ = ["CODES", "FAILURE_CODES"]

CODES: Final[dict[str, str]] = {
    "eks-name": "The pool's name is not one EKS takes.",
    "eks-node-count": "A pool has more nodes than an account may have in a node group at first.",
    "eks-no-nodes": "A node group without nodes can grow to one.",
    "eks-zone": "A zone is not in the region of the cluster.",
    "eks-zones-and-subnets": "Zones and subnets both say where the pool goes.",
    "eks-image": "EKS has no such image family with the NVIDIA driver.",
    "eks-image-machine": "No image with the NVIDIA driver is made for the instance type.",
    "eks-disk-size": "The node disk is too small.",
    "eks-disk-type": "Node disks cannot be of this type.",
    "eks-bottlerocket-mixed": "Bottlerocket shows MIG instances as nvidia.com/gpu only.",
    "eks-bottlerocket-mig": "Bottlerocket has no MIG setting for the GPU.",
    "eks-bottlerocket-profile": "Bottlerocket takes plain MIG profiles only.",
    "eks-bottlerocket-plugin": "Bottlerocket's own device plugin cannot be turned off.",
    "eks-spot-price": "EKS takes no highest price for Spot machines.",
    "eks-label": "EKS refuses a node label.",
    "eks-label-value": "A node label has no value.",
    "eks-taint": "EKS refuses a taint.",
    "eks-taint-value": "A taint has no value.",
    "eks-taint-count": "A node group cannot have so many taints.",
    "eks-tag": "EKS refuses a tag.",
    "eks-tag-count": "A node group cannot have so many tags.",
    "eks-driver-owner": "The owner of the driver is not supported on EKS.",
    "eks-native-managed": "A native member is one that gpukube sets from the spec.",
    "eks-native-refused": "A native member cannot be set.",
    "eks-native-unknown": "A node group has no such member.",
    "eks-native-value": "A native member has a value of the wrong kind.",
}
"""Findings in the spec (`rules`, `native`)."""

FAILURE_CODES: Final[dict[str, str]] = {
    "access": "AWS refused the credentials.",
    "no-credentials": "No AWS credentials were found.",
    "profile": "There is no such AWS profile.",
    "assume-role": "The role of the spec cannot be assumed.",
    "account": "The credentials are of another account than the spec names.",
    "permission": "The identity may not do this.",
    "not-enabled": "The account may not use the service in this region.",
    "sandbox-endpoint": "Sandbox mode would leave loopback.",
    "plain-http": "Credentials would go out over plain http.",
    "loopback-server": "A real token would go to a port of this machine.",
    "kubeconfig": "A kubeconfig cannot be read or has no such context.",
    "kube-endpoint": "The cluster has no Kubernetes endpoint yet.",
    "region": "There is no such region.",
    "node-role": "No role for the nodes was found, or several, or it is gone.",
    "subnets": "No subnets for the nodes were found, or several sets, or they do not fit.",
    "kubernetes-version": "EKS gives nodes the version of the cluster only.",
    "reservation": "A reservation is over, or of another kind, zone or instance type than the pool.",
    "block-in-use": "A change needs new nodes, and a Capacity Block's are not replaced one by one.",
    "capacity": "No such machine is free.",
    "zone-not-offered": "The instance type is not offered in the zones.",
    "quota": "A quota of the account is too small.",
    "busy": "Another operation runs on the node group, or too many requests at once.",
    "unchangeable": "The state of the node group lets no update in.",
    "changed": "The pool changed since it was read.",
    "exists": "A node group of this name is there already.",
    "foreign-template": "A launch template of the pool's name is somebody else's.",
    "canceled": "The update was cancelled.",
    "image-refused": "The image is not made for the instance type.",
    "refused": "AWS refused the request.",
    "throttled": "AWS throttles the requests.",
    "no-cluster": "There is no such cluster or node group.",
    "pool-gone": "The node group went away while it was waited for.",
    "launch": "The Auto Scaling group cannot start machines.",
    "subnet-full": "The subnets have too few addresses.",
    "node-join": "The machines did not join the cluster in time.",
    "node-access": "The cluster does not let EKS or the nodes in.",
    "cluster-unreachable": "EKS does not reach the cluster's Kubernetes API.",
    "launch-template": "The launch template was changed or taken away.",
    "auto-scaling-group": "The Auto Scaling group was changed by hand.",
    "drain": "Pods keep nodes from being drained.",
    "label-refused": "A node label is refused.",
    "network": "A security group or the VPC is gone.",
    "failed": "An operation ended badly.",
    "unreachable": "The AWS API cannot be reached.",
    "no-answer": "AWS's answer was lost.",
    "bad-answer": "AWS's answer makes no sense.",
    "cloud": "AWS refused the request.",
}
"""Errors of the live half (`meanings`, `failures`, `client`, `access`, `endpoint`, `places`)."""
