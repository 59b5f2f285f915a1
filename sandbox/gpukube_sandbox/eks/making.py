"""Creates an EKS cluster with its initial node groups and resources.

In scope: from a request to a running cluster. Out of scope: the control API's documents (`steering`).
"""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.addons import SYSTEM, apply_autoscaler, apply_static_plugin
from gpukube_sandbox.eks.clusters import ClusterOptions, EksCluster, default_subnets
from gpukube_sandbox.eks.lifecycle import Job, seed
from gpukube_sandbox.eks.reservations import read_reservations
from gpukube_sandbox.eks.rules import check_group, requested_template
from gpukube_sandbox.eks.schema import CREATE, check_shape
from gpukube_sandbox.eks.service import EksService, eks_key, make_group
from gpukube_sandbox.eks.things import CONTROL_PLANE, Role
from gpukube_sandbox.eks.wire.answers import Json, objects_in
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.systempods import apply_system_pods

if TYPE_CHECKING:
    from pathlib import Path

_SYSTEM: Json = {"nodegroupName": "system", "instanceTypes": ["m5.large"]}
_SYSTEM_SCALING = {"minSize": 1, "maxSize": 3, "desiredSize": 1}


@dataclass(frozen=True, slots=True)
class EksRequest:
    """A request to create a cluster."""

    account: str
    region: str
    name: str
    kubernetes_version: str = "1.34.2"
    options: ClusterOptions = field(default_factory=ClusterOptions)

    @property
    def key(self) -> str:
        """Return the key of the cluster in the service and of its Kubernetes API."""
        return eks_key(self.account, self.region, self.name)


async def make_cluster(
    service: EksService, request: EksRequest, kube_base: str, ca_pem: bytes, assets: Path | None
) -> EksCluster:
    """Start a cluster and create its initial node groups.

    Args:
        service: Service that gets the cluster.
        request: The cluster to create.
        kube_base: Address of the Kubernetes APIs.
        ca_pem: Their certificate authority.
        assets: Directory of a real control plane's binaries; None for an emulated one.

    Raises:
        AwsError: EKS would reject a node group of the options, or a reservation is invalid.
    """
    token = secrets.token_urlsafe(24)
    reviewer = (f"{kube_base}/reviews/{request.key}", ca_pem.decode())
    version = request.kubernetes_version
    kube = KubeCluster(request.name, service.clock, token, version, assets=assets, reviewer=reviewer)
    if request.options.extended_tolerations:
        kube.tolerate_extended_resources()
    await kube.start()
    reached = json.loads(kube.kubeconfig(f"{kube_base}/clusters/{request.key}", ca_pem.decode()))["clusters"][0][
        "cluster"
    ]
    cluster = EksCluster(
        account=request.account,
        region=request.region,
        name=request.name,
        kubernetes_version=kube.kubernetes_version,
        kube=kube,
        stock=service.stock,
        kube_url=reached["server"],
        ca_pem=base64.b64decode(reached["certificate-authority-data"]),
        token=token,
        created=service.clock.now(),
        options=request.options,
        status=request.options.status,
        tags=dict(request.options.tags),
        known=service.known(request.account, request.region),
    )
    _add_things(cluster)
    cluster.subnets = default_subnets(cluster, request.options.subnets)
    given = request.options.node_groups
    for body in [_SYSTEM] if given is None else objects_in(given):
        await _seed_group(service, cluster, body)
    await apply_system_pods(kube, SYSTEM)
    if request.options.foreign_plugin:
        await apply_static_plugin(kube)
    if request.options.autoscaler:
        await apply_autoscaler(kube, request.name, request.options.autoscaler)
    service.clusters[request.key] = cluster
    return cluster


def _add_things(cluster: EksCluster) -> None:
    """Add the cluster's own resources and those of its options."""
    cluster.known.clusters.append(cluster)
    cluster.known.groups.add(cluster.security_group)
    cluster.known.reservations |= {
        entry.id: entry for entry in read_reservations(cluster.options.reservations, cluster.created)
    }
    cluster.known.add_role(Role(cluster.role_arn, cluster.created, (CONTROL_PLANE,)))
    own = [f"arn:aws:iam::{cluster.account}:role/{name}" for name in cluster.options.roles]
    for arn in (cluster.node_role_arn, *own):
        cluster.known.add_role(Role(arn, cluster.created))


async def _seed_group(service: EksService, cluster: EksCluster, body: Json) -> None:
    defaults: Json = {
        "subnets": [subnet.id for subnet in cluster.subnets if not subnet.public] or [cluster.subnets[0].id],
        "nodeRole": cluster.node_role_arn,
        "scalingConfig": dict(_SYSTEM_SCALING),
    }
    sent = check_shape({**defaults, **body}, CREATE)
    identity, name, version = requested_template(sent)
    template = service.find_template(cluster, identity, name, version)
    check_group(sent, template[1].data if template else None, cluster)
    group = make_group(cluster, sent, template, service.clock.now())
    cluster.groups[group.name] = group
    await seed(Job(cluster, group, service.clock, service.pace))
