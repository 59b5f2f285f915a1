"""Checks of a pool's nodes: instance type, versions, and who installs the driver.

In scope: pure checks that apply to every cloud. Out of scope: images of one cloud (its diagnose.py), and the plugin's
pods (plugins).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import GPU_OPERATOR
from gpukube.cluster.state.components import role_of, title_of
from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.cluster.state.scheduling import daemon_misfits, lands_on
from gpukube.core.faults import fault
from gpukube.core.fields import DRIVER, IMAGE
from gpukube.core.live import live_machine
from gpukube.core.owners import MIG_CONFIG_LABEL
from gpukube.doctor.check import MOST_NAMED, Checks
from gpukube.doctor.cloud_view import diagnosed_pools
from gpukube.doctor.gpu_stack import dra_drivers, environment_of
from gpukube.gpu.catalog import catalog_date, refuse_reason
from gpukube.gpu.claims import ADVISED_KUBERNETES, GPU_CLASS, OLDEST_KUBERNETES
from gpukube.gpu.claims import DRIVER as DRA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.kube.views import NodeView, WorkloadView
    from gpukube.core.cloud_check import CloudView, Diagnosis
    from gpukube.core.faults import Fault
    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence

_SKEW: Final = 3
"""Minor versions that a kubelet may be older than the API server (kubernetes.io: releases/version-skew-policy)."""
_OFF: Final = "all-disabled"
_SOURCE: Final = "RUNTIME_CONFIG_SOURCE"

CHECKS: Final = Checks(needs=("cloud", "pools"))


@CHECKS.add(
    "machine-retired",
    title="instance types that are retired or have no NVIDIA GPU",
    consequence="no new node can be created, and existing ones are lost when the cloud withdraws the type",
    link="https://learn.microsoft.com/azure/virtual-machines/sizes/retirement/retired-sizes-list",
)
def _retired(evidence: Evidence) -> Iterator[Fault]:
    for view, diagnosis, pool in diagnosed_pools(evidence):
        if reason := refuse_reason(evidence.cluster.provider, pool.instance_type):
            yield fault(
                where=view.name_of(pool),
                seen=f"{pool.instance_type}: {reason}",
                fix=f"create a pool of another type, then {diagnosis.remove(view, pool)}",
                evidence=(f"catalog of {catalog_date()}",),
            )


@CHECKS.add(
    "machine-without-mig",
    title="MIG requested on GPUs that do not support it",
    consequence="the MIG manager fails on each of its nodes, and the GPUs stay whole",
    link="https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-gpus.html",
)
def _no_mig(evidence: Evidence) -> Iterator[Fault]:
    for view, _, pool in diagnosed_pools(evidence):
        machine, cut = live_machine(evidence.cluster.provider, pool), pool.labels.get(MIG_CONFIG_LABEL, _OFF)
        if machine is not None and machine.mig_capable is False and cut != _OFF:
            yield fault(
                where=view.name_of(pool),
                seen=f"the label {MIG_CONFIG_LABEL}={cut} needs GPUs with MIG; {machine.model} does not support it",
                fix=f"remove the label {MIG_CONFIG_LABEL} from the pool in the cloud, and use "
                "sharing.timeSlicing instead",
                evidence=(f"{machine.name}: {machine.devices} x {machine.model}",),
            )


@CHECKS.add(
    "version-skew",
    title="nodes whose Kubernetes version does not fit the control plane's",
    consequence="the combination is not supported: nodes may become NotReady, and upgrades are refused",
    link="https://kubernetes.io/releases/version-skew-policy/",
)
def _skew(evidence: Evidence) -> Iterator[Fault]:
    for view, diagnosis, pool in diagnosed_pools(evidence):
        control, nodes = _minor(view.facts.kubernetes_version), _minor(diagnosis.node_version(pool))
        if control is None or nodes is None or 0 <= control - nodes <= _SKEW:
            continue
        ahead = nodes > control
        yield fault(
            where=view.name_of(pool),
            seen=f"its nodes run Kubernetes {diagnosis.node_version(pool)}, the control plane "
            f"{view.facts.kubernetes_version}",
            fix="upgrade the control plane first" if ahead else diagnosis.upgrade(view, pool),
            evidence=("nodes must not be newer" if ahead else f"nodes may be at most {_SKEW} minor versions older",),
        )


def _minor(version: str) -> int | None:
    found = re.match(r"1\.(\d+)", version)
    return int(found[1]) if found else None


@CHECKS.add(
    "dra-version",
    title="a Kubernetes version, of the cluster or of a node, that is too old for the DRA driver",
    consequence="ResourceClaims for GPUs may not be allocated",
    link="https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu",
    needs=("version", "nodes", "daemonsets", "dra"),
)
def _dra(evidence: Evidence) -> Iterator[Fault]:
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", evidence.version)
    version = tuple(int(part) for part in numbers.groups()) if numbers else ()
    if GPU_CLASS in evidence.seen.device_classes and version and version < ADVISED_KUBERNETES:
        yield fault(
            where=f"DeviceClass {GPU_CLASS}",
            seen=f"Kubernetes {evidence.version} is older than the minimum of the DRA driver, "
            f"{'.'.join(map(str, ADVISED_KUBERNETES))}",
            fix="upgrade the cluster, or use the device plugin instead: run helm uninstall on the DRA driver's "
            "release (helm list --all-namespaces shows it)",
            evidence=tuple(f"ResourceSlice of node {node}" for node in sorted(evidence.seen.sliced_by(DRA)))[
                :MOST_NAMED
            ],
            severity="warning",
        )
    if not version or version[:2] < OLDEST_KUBERNETES:
        return  # then its nodes are older too
    oldest = ".".join(map(str, OLDEST_KUBERNETES))
    for node in evidence.nodes:
        kubelet = re.match(r"v(\d+)\.(\d+)", node.kubelet)
        served = any(lands_on(item, node) for item in dra_drivers(evidence))
        if served and kubelet and (int(kubelet[1]), int(kubelet[2])) < OLDEST_KUBERNETES:
            yield fault(
                where=f"node {node.name}",
                seen=f"its kubelet {node.kubelet} is older than {oldest}, the first version with resource.k8s.io/v1",
                fix="upgrade its pool to the cluster's version, in the spec by kubernetesVersion, or in the cloud",
                evidence=(f"the cluster runs Kubernetes {evidence.version}",),
            )


@CHECKS.add(
    "driver-of-nobody",
    title="pools on which neither the cloud nor the cluster installs a driver",
    consequence="no plugin finds a GPU, and the nodes advertise none",
    link="https://github.com/NVIDIA/k8s-device-plugin/issues/1011",
    needs=("cloud", "pools", "nodes", "daemonsets"),
)
def _no_driver(evidence: Evidence) -> Iterator[Fault]:
    manifests = evidence.provider.extras.in_cluster.driver_manifests
    for view, diagnosis, pool, nodes in driverless_pools(evidence):
        manifest = manifests.get(str(pool.fields.get(IMAGE))) or manifests.get("", "")
        yield fault(
            where=view.name_of(pool),
            seen="neither the cloud nor anything in the cluster installs a driver on its nodes",
            fix=f"kubectl apply --filename {manifest}"
            if manifest
            else f"helm install gpu-operator {GPU_OPERATOR.chart} --repo {GPU_OPERATOR.repository} "
            "--namespace gpu-operator --create-namespace; or create a pool with the cloud's driver, then "
            + diagnosis.remove(view, pool),
            evidence=tuple(f"node {node.name}: no devices" for node in nodes[:MOST_NAMED]) or ("no nodes now",),
        )


def driverless_pools(
    evidence: Evidence,
) -> Iterator[tuple[CloudView, Diagnosis, Observed, tuple[NodeView, ...]]]:
    """Yield the GPU pools on whose nodes nothing installs a driver, with these nodes."""
    installers = [item for item in evidence.seen.daemonsets if role_of(item) in ("driver", "cloud-driver")]
    for view, diagnosis, pool in diagnosed_pools(evidence):
        if pool.fields.get(DRIVER) != "none" or live_machine(evidence.cluster.provider, pool) is None:
            continue
        nodes = nodes_of_pool(evidence.seen, pool)
        works = any(node.devices or evidence.published_on(node.name).devices for node in nodes)
        if not works and not any(_runs_on(item, nodes, pool) for item in installers):
            yield view, diagnosis, pool, nodes


@CHECKS.add(
    "driver-twice",
    title="nodes with both the cloud's driver and a GPU Operator's",
    consequence="the operator's pods fail or stop containerd, and the node loses its GPUs",
    link="https://github.com/NVIDIA/gpu-operator/issues/525",
    needs=("cloud", "pools", "nodes", "daemonsets"),
)
def _two_drivers(evidence: Evidence) -> Iterator[Fault]:
    for view, diagnosis, pool in diagnosed_pools(evidence):
        if pool.fields.get(DRIVER) == "none" or live_machine(evidence.cluster.provider, pool) is None:
            continue
        nodes = nodes_of_pool(evidence.seen, pool)
        rivals = [
            item
            for item in evidence.seen.daemonsets
            if role_of(item) in diagnosis.brought and nodes and _runs_on(item, nodes, pool)
        ]
        if rivals:
            yield _clash(evidence, (view, diagnosis, pool), rivals)


def _clash(evidence: Evidence, at: tuple[CloudView, Diagnosis, Observed], rivals: list[WorkloadView]) -> Fault:
    view, diagnosis, pool = at
    what = " and ".join(dict.fromkeys(title_of(role) for item in rivals if (role := role_of(item))))
    name, namespace = _operator(evidence, rivals[0])
    values = " ".join(f"--set {value}" for value in diagnosis.operator_values)
    return fault(
        where=view.name_of(pool),
        seen=f"its nodes have the cloud's driver, and a GPU Operator runs {what} there too",
        fix=f"helm upgrade {name} {GPU_OPERATOR.chart} --repo {GPU_OPERATOR.repository} --namespace {namespace} "
        f"--reuse-values {values}",
        evidence=tuple(f"{item}, {item.desired} pods" for item in rivals),
    )


@CHECKS.add(
    "toolkit-config-source",
    title="a container toolkit that overwrites containerd's configuration",
    consequence="containerd 2 does not start with that configuration, and the node becomes NotReady",
    link="https://github.com/NVIDIA/aicr/issues/1688",
    severity="warning",
    needs=("cloud", "pools", "nodes", "daemonsets"),
)
def _toolkit_source(evidence: Evidence) -> Iterator[Fault]:
    for item in evidence.seen.daemonsets:
        if role_of(item) != "toolkit" or environment_of(evidence.manifest(item)).get(_SOURCE, "").startswith("file"):
            continue
        for view, diagnosis, pool in diagnosed_pools(evidence):
            nodes, least = nodes_of_pool(evidence.seen, pool), diagnosis.toolkit_from
            version = _minor(diagnosis.node_version(pool))
            if least is None or version is None or version < least or not nodes or not _runs_on(item, nodes, pool):
                continue
            name, namespace = _operator(evidence, item)
            yield fault(
                where=view.name_of(pool),
                seen=f"{item} configures containerd without {_SOURCE}=file",
                fix=f"helm upgrade {name} {GPU_OPERATOR.chart} --repo {GPU_OPERATOR.repository} "
                f"--namespace {namespace} --reuse-values --set 'toolkit.env[0].name={_SOURCE}' "
                "--set 'toolkit.env[0].value=file'",
                evidence=(f"nodes of Kubernetes {diagnosis.node_version(pool)}",),
            )


def _operator(evidence: Evidence, operand: WorkloadView) -> tuple[str, str]:
    """Return the operator's release and its namespace; the usual names if its record was not read."""
    release = next((item for item in evidence.releases if item.chart == GPU_OPERATOR.chart), None)
    return (release.name, release.namespace) if release else (GPU_OPERATOR.chart, operand.namespace)


def _runs_on(daemonset: WorkloadView, nodes: tuple[NodeView, ...], pool: Observed) -> bool:
    """Return whether a DaemonSet runs on a pool's nodes; for an empty pool, on the nodes it would have."""
    places = [(node.labels, node.taints, node.name) for node in nodes] or [(pool.labels, pool.effective_taints, "")]
    return any(
        not daemon_misfits(daemonset.placement, labels, taints, name=name, unknown=None if name else lambda _key: True)
        for labels, taints, name in places
    )
