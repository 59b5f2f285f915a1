"""Finds the missing step in the last log lines of a plugin that crashes or registers nothing.

In scope: which containers' logs to read, and a table from texts to findings; pure. Out of scope: reading logs
(engine.proving), container states (pods).

Source: messages of NVIDIA/k8s-device-plugin v0.20.0 (cmd/nvidia-device-plugin, cmd/config-manager, internal/rm,
internal/plugin, api/config/v1), of kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 (hack/kubelet-plugin-prestart.sh,
cmd/gpu-kubelet-plugin, pkg/featuregates), and the linked issues.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import DRA_DRIVER, NAMESPACE, kind_of
from gpukube.cluster.proof.outcome import code_of_step, step_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.cluster.kube.views import PodView
    from gpukube.cluster.proof.outcome import PoolProof, Step
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired
    from gpukube.errors import Finding

_LOUD: Final = ("CrashLoopBackOff", "Error")


@dataclass(frozen=True, slots=True)
class Source:
    """A container log to read for the finding about its node."""

    node: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class _Row:
    words: re.Pattern[str]
    step: Step
    means: str
    fix: str = ""


_ROWS: Final = (
    _Row(
        re.compile(r"NVIDIA_DRIVER_ROOT \(currently set|nvidia-smi: not found|libnvidia-ml\.so\.1: not found"),
        "driver",
        "the DRA driver finds no NVIDIA driver below nvidiaDriverRoot: it is not installed yet, or is elsewhere "
        "(kubernetes-sigs/dra-driver-nvidia-gpu#692)",
        "wait for the driver's installation; or compare nvidiaDriverRoot: helm get values "
        f"{DRA_DRIVER.name} --namespace {NAMESPACE}",
    ),
    _Row(
        re.compile(r"feature gate validation failed|mutually exclusive with|to also be enabled"),
        "plugin-pod",
        "feature gates of the DRA driver exclude each other",
        "remove one from featureGates in the release's values",
    ),
    _Row(
        re.compile(r"failed checksum verification|checkpoint is corrupted|unable to get checkpoint"),
        "plugin-pod",
        "a newer version of the DRA driver wrote the node's checkpoint (kubernetes-sigs/dra-driver-nvidia-gpu#951)",
        "replace the node; or drain it and delete checkpoint.json of the plugin on it",
    ),
    _Row(
        re.compile(r"MIG mode enabled but no configured MIG devices"),
        "geometry",
        "a GPU is in MIG mode without instances: it publishes nothing",
        "create the instances, or turn MIG off, then restart the plugin's pod; or replace the node",
    ),
    _Row(
        re.compile(
            r"could not load NVML library|nvml init failed|ERROR_LIBRARY_NOT_FOUND|[Ff]ailed to initialize NVML"
        ),
        "driver",
        "the node has no NVIDIA driver, or nvidia is not its container runtime (#478, #1011)",
        "check the pool's node image and driver; gpukube explain owner shows who installs the driver",
    ),
    _Row(
        re.compile(r"invalid MIG configuration|no MIG devices configured|same migEnabled value|more than one MIG"),
        "geometry",
        "under strategy single all GPUs of a node need the same MIG layout (NVIDIA/gpu-operator#460, #603)",
        "write strategy: mixed, or replace the node",
    ),
    _Row(
        re.compile(r"specified config .* does not exist|error opening config file"),
        "config-entry",
        "the node's label names an entry that the config map does not have",
        "gpukube pool create writes the entry",
    ),
    _Row(
        re.compile(r"number of replicas must be|no resources specified|unknown version|unable to load config"),
        "config-entry",
        "the plugin rejects this node's config entry",
        "gpukube pool create rewrites the entry",
    ),
    _Row(
        re.compile(r"MPS is not supported for MIG|invalid MPS configuration"),
        "config-entry",
        "MPS does not work with MIG, and a GPU allows at most 48 clients, an older GPU 16",
        "change sharing",
    ),
    _Row(
        re.compile(r"error waiting for MPS daemon"),
        "features",
        "no MPS daemon runs on the node: it waits for the label nvidia.com/mps.capable (#634, #712)",
    ),
    _Row(
        re.compile(r"No devices found"),
        "driver",
        "the plugin sees no GPU: the driver is not ready, or the machine has none",
        "check the pool's node image and driver",
    ),
)
"""The first row that matches a line applies; the last lines are checked first."""


def log_sources(desired: Desired, proof: PoolProof, seen: Snapshot) -> tuple[Source, ...]:
    """Return the logs that may explain more: of crashing plugin pods, and of serving ones on nodes without devices."""
    kind = kind_of(desired.ownership.advertiser)
    if kind is None:
        return ()
    dark = {node.node: {step_of(finding) for finding in node.findings} for node in proof.per_node}
    found = []
    for pod in seen.pods:
        steps = dark.get(pod.node, set())
        if (pod.owner_kind, pod.owner) != ("DaemonSet", kind.plugin) or pod.terminating:
            continue
        loud = [state.name for state in pod.containers if state.waiting in _LOUD]
        if "plugin-pod" in steps and loud:
            found.append(Source(pod.node, pod.name, loud[0]))
        elif kind is DRA_DRIVER and "plugin-pod" in steps and (waiting := _initialising(pod)):
            found.append(Source(pod.node, pod.name, waiting))
        elif steps & {"count", "slices"} and not _shows_devices(proof, pod.node):
            found.append(Source(pod.node, pod.name, kind.container))
    return tuple(found)


def _initialising(pod: PodView) -> str:
    """Return the init container that a pod is in; "" if it is past them."""
    return next((state.name for state in pod.containers if state.init and not state.ready), "")


def _shows_devices(proof: PoolProof, node: str) -> bool:
    return any(any(item.seen.values()) for item in proof.per_node if item.node == node)


def explain_by_log(proof: PoolProof, source: Source, lines: Iterable[str]) -> PoolProof:
    """Add what the log explains to a node's finding; return the proof unchanged if no row matches."""
    match = next(((row, line) for line in reversed(list(lines)) for row in _ROWS if row.words.search(line)), None)
    if match is None:
        return proof
    row, line = match
    if row.step != "plugin-pod" and any(step_of(finding) == row.step for finding in proof.all_findings):
        return proof  # already found at its cause
    nodes = tuple(
        replace(node, findings=tuple(_better(finding, row, line) for finding in node.findings))
        if node.node == source.node
        else node
        for node in proof.per_node
    )
    return replace(proof, per_node=nodes)


def _better(finding: Finding, row: _Row, line: str) -> Finding:
    if step_of(finding) not in ("plugin-pod", "slices", "count"):
        return finding
    seen = f"{finding.seen}; its log: {line.strip()[:300]}"
    return replace(finding, code=code_of_step(row.step), seen=seen, why=row.means, fix=row.fix or finding.fix)
