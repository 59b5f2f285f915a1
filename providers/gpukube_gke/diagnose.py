"""Known problems of GPU node pools on GKE: live pools -> ailments.

In scope: checks that need only what GKE returns about its pools. Out of scope: calls, and checks inside the cluster
(gpukube.doctor).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.cloud_check import CloudChecks, Diagnosis
from gpukube.core.faults import fault
from gpukube.core.jsontree import at, strings, tree
from gpukube.core.resolve import GPU_TAINT
from gpukube_gke.facts.partitions import PARTITIONS
from gpukube_gke.pool.fields import NO_DRIVER, OPT_OUT_LABEL
from gpukube_gke.pool.progress import pool_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.cloud_check import CloudView
    from gpukube.core.faults import Fault
    from gpukube.core.values import Observed
    from gpukube.errors import GpukubeError

_DRIVER_FLOOR: Final = (1, 30, 1, 1156000)
"""First version that installs the default driver automatically (docs: kubernetes-engine/how-to/gpus)."""
_MPS_FLOOR: Final = (1, 27, 7, 1088000)
"""First version with MPS (docs: kubernetes-engine/how-to/nvidia-mps-gpus)."""
_SCOPES: Final = ("devstorage.read_only", "devstorage.read_write", "devstorage.full_control", "cloud-platform")
_VERSION: Final = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:-gke\.(\d+))?.*")

_CHECKS: Final = CloudChecks()


def parse_version(version: str) -> tuple[int, ...]:
    """Parse "1.30.1-gke.1156000" as (1, 30, 1, 1156000), with its numbers only; () if it is not a version."""
    found = _VERSION.fullmatch(version)
    return tuple(int(part) for part in found.groups() if part is not None) if found else ()


def _problem_of(view: CloudView, pool: Observed) -> GpukubeError | None:
    if pool.status not in ("ERROR", "RUNNING_WITH_ERROR"):
        return None
    return pool_error(pool.native, view.name_of(pool))


def _show(view: CloudView, pool: Observed) -> str:
    return f"gcloud container node-pools describe {_names(view, pool)}"


def _remove(view: CloudView, pool: Observed) -> str:
    return f"gcloud container node-pools delete {_names(view, pool)}"


def _upgrade(view: CloudView, pool: Observed) -> str:
    cluster = view.cluster
    project, location = cluster.identity["project"], cluster.identity["location"]
    return (
        f"gcloud container clusters upgrade {cluster.name} --node-pool {pool.name} "
        f"--location {location} --project {project}"
    )


def _node_version(pool: Observed) -> str:
    return str(pool.native.get("version") or "").partition("-")[0]


def _names(view: CloudView, pool: Observed) -> str:
    cluster = view.cluster
    project, location = cluster.identity["project"], cluster.identity["location"]
    return f"{pool.name} --cluster {cluster.name} --location {location} --project {project}"


def _config(pool: Observed) -> Mapping[str, object]:
    return tree(pool.native, "config")


def _accelerator(pool: Observed) -> Mapping[str, object]:
    return tree(_config(pool), "accelerators", 0)


def _driver(pool: Observed) -> str:
    """Return the driver version as GKE has it; "" if it was never set."""
    found = str(at(_accelerator(pool), "gpuDriverInstallationConfig", "gpuDriverVersion") or "")
    return "" if found == "GPU_DRIVER_VERSION_UNSPECIFIED" else found


def _sharing(pool: Observed) -> Mapping[str, object]:
    return tree(_accelerator(pool), "gpuSharingConfig")


def _opts_out(pool: Observed) -> bool:
    return pool.labels.get(OPT_OUT_LABEL) == "true"


def _driver_flag(pool: Observed, version: str) -> str:
    accelerator = _accelerator(pool)
    kind, count = accelerator.get("acceleratorType"), accelerator.get("acceleratorCount")
    return f"--accelerator type={kind},count={count},gpu-driver-version={version}"


@_CHECKS.each_pool(
    "gke-sharing-without-plugin",
    title="GKE's GPU sharing on pools that disable its plugin",
    consequence="nodes advertise whole GPUs or none, never shares",
    link="https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus",
)
def _sharing_without_plugin(view: CloudView, pool: Observed) -> Fault | None:
    strategy = _sharing(pool).get("gpuSharingStrategy")
    if not _opts_out(pool) or not strategy:
        return None
    return fault(
        view.name_of(pool),
        f"gpuSharingConfig {strategy} has no effect: the label {OPT_OUT_LABEL} disables GKE's plugin, which applies it",
        f"gcloud container node-pools update {_names(view, pool)} --node-labels {_kept(pool)}",
        evidence=(f"label {OPT_OUT_LABEL}=true", f"gpuSharingConfig.gpuSharingStrategy={strategy}"),
    )


@_CHECKS.each_pool(
    "gke-driverless",
    title="pools whose driver installation never finishes",
    consequence="no plugin finds a GPU",
    link="https://github.com/NVIDIA/aicr/issues/2047",
)
def _driverless(view: CloudView, pool: Observed) -> Fault | None:
    driver = _driver(pool)
    if not _opts_out(pool) or not _accelerator(pool) or driver == NO_DRIVER:
        return None
    return fault(
        view.name_of(pool),
        f"GKE installs the driver ({driver or 'DEFAULT'}), but the label {OPT_OUT_LABEL}=true excludes the pods "
        "that finish the installation",
        f"gcloud container node-pools update {_names(view, pool)} --node-labels {_kept(pool)}; or, for a plugin "
        f"of your own: gcloud container node-pools update {_names(view, pool)} {_driver_flag(pool, 'disabled')}",
        evidence=(f"label {OPT_OUT_LABEL}=true", f"gpuDriverVersion={driver or 'unset'}"),
    )


@_CHECKS.each_pool(
    "gke-default-driver",
    title="pools without a driver version, on GKE versions that install none by default",
    consequence="the nodes have no driver and advertise no GPU",
    link="https://cloud.google.com/kubernetes-engine/docs/how-to/gpus",
)
def _default_driver(view: CloudView, pool: Observed) -> Fault | None:
    if not _accelerator(pool) or _driver(pool) or _opts_out(pool) or not _is_before(view, pool, _DRIVER_FLOOR):
        return None
    return fault(
        view.name_of(pool),
        f"no driver version is set, and GKE {view.facts.kubernetes_version} installs none by default",
        f"gcloud container node-pools update {_names(view, pool)} {_driver_flag(pool, 'default')}",
        evidence=(f"version={pool.native.get('version', '?')}", "gpuDriverInstallationConfig is not set"),
    )


@_CHECKS.each_pool(
    "gke-taint",
    title="GPU pools without GKE's taint",
    consequence="any pod may run on GPU nodes and keep them from scaling down",
    link="https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/703",
    severity="warning",
)
def _taint(view: CloudView, pool: Observed) -> Fault | None:
    is_there = any((t.key, t.effect) == (GPU_TAINT.key, GPU_TAINT.effect) for t in pool.effective_taints)
    if not _accelerator(pool) or is_there or pool.effective_taints or pool.state != "ready":
        return None
    return fault(
        view.name_of(pool),
        f"GKE created the pool without the taint {GPU_TAINT}: the cluster had no other pool then",
        f"gcloud container node-pools update {_names(view, pool)} --node-taints {GPU_TAINT}",
        evidence=("config.taints is empty",),
    )


@_CHECKS.each_pool(
    "gke-scopes",
    title="nodes that cannot download the driver",
    consequence="the driver's download is denied, and the nodes advertise no GPU",
    link="https://cloud.google.com/kubernetes-engine/docs/how-to/gpus",
)
def _scopes(view: CloudView, pool: Observed) -> Fault | None:
    scopes = [scope.rpartition("/")[2] for scope in strings(_config(pool), "oauthScopes")]
    if not _accelerator(pool) or any(scope in _SCOPES for scope in scopes) or _driver(pool) == NO_DRIVER:
        return None
    return fault(
        view.name_of(pool),
        "the nodes cannot read Cloud Storage, from which GKE downloads the driver",
        f"create a pool with --scopes gke-default, then {_remove(view, pool)}",
        evidence=(f"oauthScopes={','.join(scopes) or 'none'}",),
    )


@_CHECKS.each_pool(
    "gke-partition",
    title="partition sizes that GKE's plugin does not support",
    consequence="the plugin does not start, and the nodes advertise no GPU",
    link="https://github.com/GoogleCloudPlatform/container-engine-accelerators/blob/master/pkg/gpu/nvidia/mig/mig.go",
)
def _partition(view: CloudView, pool: Observed) -> Fault | None:
    size, kind = str(_accelerator(pool).get("gpuPartitionSize") or ""), str(_accelerator(pool).get("acceleratorType"))
    if not size or kind not in PARTITIONS or size in PARTITIONS[kind] or _opts_out(pool):
        return None
    return fault(
        view.name_of(pool),
        f"GKE's plugin does not support the partition size {size} of {kind}",
        f"create a pool with gpu-partition-size={'|'.join(PARTITIONS[kind])}, then {_remove(view, pool)}",
        evidence=(f"gpuPartitionSize={size}", f"acceleratorType={kind}"),
    )


@_CHECKS.each_pool(
    "gke-mps-version",
    title="MPS on nodes that are too old",
    consequence="the nodes advertise whole GPUs or none",
    link="https://cloud.google.com/kubernetes-engine/docs/how-to/nvidia-mps-gpus",
)
def _mps_version(view: CloudView, pool: Observed) -> Fault | None:
    if _sharing(pool).get("gpuSharingStrategy") != "MPS":
        return None
    version = str(pool.native.get("version") or view.facts.kubernetes_version)
    if not (found := parse_version(version)) or not _is_older(found, _MPS_FLOOR):
        return None
    return fault(
        view.name_of(pool),
        f"nodes of version {version} have no MPS: it needs 1.27.7-gke.1088000",
        _upgrade(view, pool),
        evidence=(f"version={version}", "gpuSharingStrategy=MPS"),
    )


@_CHECKS.each_pool(
    "gke-autoprovisioned",
    title="gpukube pools that node auto-provisioning owns",
    consequence="GKE deletes the pool when it is empty",
    link="https://cloud.google.com/kubernetes-engine/docs/how-to/node-auto-provisioning",
    severity="warning",
)
def _autoprovisioned(view: CloudView, pool: Observed) -> Fault | None:
    if not pool.owner or not at(pool.native, "autoscaling", "autoprovisioned"):
        return None
    return fault(
        view.name_of(pool),
        "node auto-provisioning owns this pool, but it has gpukube's labels",
        f"gcloud container node-pools update {_names(view, pool)} --no-enable-autoprovisioning",
        evidence=("autoscaling.autoprovisioned=true", f"label gpukube.io/owner={pool.owner}"),
    )


def _is_before(view: CloudView, pool: Observed, floor: tuple[int, ...]) -> bool:
    """Return whether the control plane is older; its build number, which the facts lack, is at least the nodes'."""
    control, nodes = parse_version(view.facts.kubernetes_version), parse_version(str(pool.native.get("version") or ""))
    if not control or control[:3] > floor[:3]:
        return False
    return control[:3] < floor[:3] or (nodes[:3] == control[:3] and _is_older(nodes, floor))


def _is_older(found: tuple[int, ...], floor: tuple[int, ...]) -> bool:
    """Compare versions to the shorter length: "1.30.1" alone is not older than a build of 1.30.1."""
    return found < floor[: len(found)]


def _kept(pool: Observed) -> str:
    """Return the labels to keep, without the one that disables GKE's plugin: an update replaces them all."""
    kept = (f"{key}={value}" for key, value in sorted(pool.labels.items()) if key != OPT_OUT_LABEL)
    return ",".join(kept) or '""'


DIAGNOSIS: Final = Diagnosis(
    checks=_CHECKS,
    problem_of=_problem_of,
    autoscaler=None,
    show=_show,
    remove=_remove,
    upgrade=_upgrade,
    node_version=_node_version,
    brought=("driver",),
    toolkit_from=33,
    operator_values=(
        "driver.enabled=false",
        "hostPaths.driverInstallDir=/home/kubernetes/bin/nvidia",
        "toolkit.installDir=/home/kubernetes/bin/nvidia",
        "cdi.enabled=true",
    ),
)
"""GKE's autoscaler derives devices from type, partitions, and clients (docs: kubernetes-engine/how-to/gpus).

Operator next to GKE's own driver: NVIDIA/cloud-native-docs gpu-operator/google-gke.rst."""
