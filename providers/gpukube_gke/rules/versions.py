"""Versions of GKE: the minimum that a pool needs, and the versions allowed with a control plane.

In scope: the table of first versions, and checks of `kubernetesVersion` and a control plane against it. Out of scope:
comparing the spec with the live state (`gpukube.core.diff`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at
from gpukube.errors import Finding, SpecError
from gpukube_gke.pool.fields import image_of, runs_own_plugin
from gpukube_gke.pool.purchase import is_flex_start, is_queued

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Target

_Version = tuple[float, float, float, float]
_VERSION: Final = re.compile(r"(\d+)\.(\d+)(?:\.(\d+)(?:-gke\.(\d+))?)?.*")


@dataclass(frozen=True, slots=True)
class _Floor:
    """A feature that a version introduced.

    Attributes:
        name: Human-readable name of the feature.
        needs: Whether a pool needs it.
        first: First versions, one per minor version that got it; later minor versions have it.
        source: Documentation of these versions.
    """

    name: str
    needs: Callable[[Target], bool]
    first: tuple[str, ...]
    source: str


_GPUS: Final = "docs: kubernetes-engine/how-to/gpus"
_HYPERCOMPUTER: Final = "docs: ai-hypercomputer/docs/create/gke-ai-hypercompute"
_FLOORS: Final = (
    _Floor(
        "RTX PRO 6000 machines (g4)",
        lambda target: target.machine.name.startswith("g4-") and not target.machine.is_fractional,
        ("1.34.0-gke.1662000",),
        _GPUS,
    ),
    _Floor(
        "machines with a fraction of an RTX PRO 6000",
        lambda target: target.machine.name.startswith("g4-") and target.machine.is_fractional,
        ("1.34.5-gke.1153000", "1.35.2-gke.1485000"),
        _GPUS,
    ),
    _Floor(
        "A3 Ultra machines",
        lambda target: target.machine.name.startswith("a3-ultragpu-"),
        ("1.31.4-gke.1183000",),
        _HYPERCOMPUTER,
    ),
    _Floor(
        "A4 machines",
        lambda target: target.machine.name.startswith("a4-"),
        ("1.32.1-gke.1729000",),
        _HYPERCOMPUTER,
    ),
    _Floor(
        "A4X machines",
        lambda target: target.machine.name.startswith("a4x-highgpu-"),
        ("1.32.8-gke.1108000", "1.33.4-gke.1036000"),
        _HYPERCOMPUTER,
    ),
    _Floor(
        "A4X Max machines",
        lambda target: target.machine.name.startswith("a4x-maxgpu-"),
        ("1.34.3-gke.1318000", "1.35.0-gke.2745000"),
        _HYPERCOMPUTER,
    ),
    _Floor(
        "MPS",
        lambda target: target.sharing.slicing is not None and target.sharing.slicing.mode == "mps",
        ("1.27.7-gke.1088000",),
        "docs: kubernetes-engine/how-to/nvidia-mps-gpus",
    ),
    _Floor("a choice of the driver", lambda target: bool(target.driver_version), ("1.27.2-gke.1200",), _GPUS),
    _Floor(
        "flex-start",
        is_flex_start,
        ("1.32.2-gke.1652000",),
        "docs: kubernetes-engine/concepts/dws",
    ),
    _Floor(
        "queued provisioning",
        is_queued,
        ("1.28.3-gke.1098000",),
        "docs: kubernetes-engine/how-to/provisioningrequest",
    ),
    _Floor(
        "fast socket",
        lambda target: at(target.native, "config", "fastSocket", "enabled") is True,
        ("1.25.2-gke.1700",),
        "GoogleCloudPlatform/magic-modules, node_config.go.tmpl: fast_socket",
    ),
)
_OLD_UBUNTU: Final = (1, 33)
_NEWER_DRIVERS: Final = {"H200-141GB": "R550", "B200-180GB": "R570"}
"""GPU -> oldest driver, for GPUs too new for R535 on Ubuntu nodes up to 1.33 (docs: kubernetes-engine/how-to/gpus)."""


def check_versions(target: Target) -> Iterator[Finding]:
    """Check the version in the spec; a minor version means its newest patch."""
    requested = target.kubernetes_version
    where = target.locator.at("kubernetesVersion")
    missed = list(_missed(target, _parse(requested))) if requested else []
    for floor in missed:
        message = f'kubernetesVersion is "{requested}", which is too old for {floor.name}'
        why = f"it was added in {' and '.join(floor.first)} ({floor.source})"
        yield Finding("gke-version-floor", where, message, fix=f'write "{_minor(floor.first[-1])}" or later', why=why)
    if (
        requested
        and _parse(requested)[:2] <= _OLD_UBUNTU
        and image_of(target).startswith("UBUNTU")
        and (driver := _needed_driver(target))
    ):
        yield Finding(
            "gke-ubuntu-driver",
            target.locator.at("image"),
            f"{target.machine.model} needs driver {driver}, but Ubuntu nodes of {requested} get R535",
            fix="write image: COS_CONTAINERD, or a later kubernetesVersion",
            severity="warning",
        )
    if requested.count(".") > 1 and not missed:
        yield Finding(
            "gke-version-moves",
            where,
            f'kubernetesVersion is "{requested}", but GKE upgrades nodes itself',
            fix=f'write "{_minor(requested)}", which allows any patch',
            why="after such an upgrade a plan would recreate the nodes with the old version",
            severity="hint",
        )


def is_picky(target: Target) -> bool:
    """Return whether the version of the control plane matters to a pool."""
    return bool(target.kubernetes_version) or any(floor.needs(target) for floor in _FLOORS)


def require_version(target: Target, plane: str) -> None:
    """Check a new pool against its control plane.

    Raises:
        SpecError: The nodes would be newer than the control plane, or the control plane is too old for the pool.
    """
    requested = target.kubernetes_version
    if requested and _parse(requested)[: requested.count(".") + 1] > _parse(plane)[: requested.count(".") + 1]:
        raise SpecError(
            f'kubernetesVersion is "{requested}", newer than the control plane ({plane})',
            where=target.locator.at("kubernetesVersion"),
            fix=f'write "{plane}" or an older one, or upgrade the control plane first',
            code="kubernetes-version",
        )
    for floor in _missed(target, _parse(plane)):
        raise SpecError(
            f"the control plane runs {plane}, which is too old for {floor.name}",
            where=target.where,
            fix=f"upgrade the cluster to {floor.first[-1]} or later",
            why=floor.source,
            code="kubernetes-version",
        )


def _missed(target: Target, version: _Version) -> Iterator[_Floor]:
    for floor in _FLOORS:
        if floor.needs(target) and not _has(floor, version):
            yield floor


def _has(floor: _Floor, version: _Version) -> bool:
    firsts = [_parse(first) for first in floor.first]
    return version[:2] > max(firsts)[:2] or any(first[:2] == version[:2] and version >= first for first in firsts)


def _parse(text: str) -> _Version:
    """Parse a version; missing parts count as the newest. A text that is not a version is newer than all."""
    found = _VERSION.fullmatch(text)
    parts = [inf if part is None else int(part) for part in found.groups()] if found else [inf] * 4
    return parts[0], parts[1], parts[2], parts[3]


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _needed_driver(target: Target) -> str:
    if target.driver_owner == "none" or runs_own_plugin(target):
        return ""
    return _NEWER_DRIVERS.get(str(target.machine.model), "")
