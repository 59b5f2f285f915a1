"""Clusters full of pools, each pool another sharing: what users of a cloud may want side by side.

In scope: the pools of each cluster with the devices that their one node must show, and what a cloud cannot do. Out of
scope: running anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.changes.world import SMALL, Document, Pool, address, spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SLICED: Pool = {"timeSlicing": {"replicas": 4}}
MPS: Pool = {"mps": {"replicas": 4}}
SKU = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
CUTTABLE: Mapping[str, Pool] = {
    "eks": {"instanceType": "p5.4xlarge"},
    "aks": {"instanceType": "Standard_NC24ads_A100_v4"},
    "gke": {"instanceType": "a2-highgpu-1g", "zones": ["us-central1-a"]},
}
"""A machine with one GPU that can be cut."""
SEVENTH = {"eks": "1g.10gb", "aks": "1g.10gb", "gke": "1g.5gb"}


def one(name: str, machine: Pool, **more: object) -> Pool:
    """Write a pool of one node."""
    return {"name": name, "nodes": {"count": 1}, **machine, **more}


def cut(cloud: str, strategy: str = "single", **more: object) -> Pool:
    """Write a sharing that cuts each GPU into seven."""
    return {"mig": {"profile": SEVENTH[cloud], "strategy": strategy}, **more}


def _uncut(cloud: str) -> dict[str, tuple[Pool, Document]]:
    machine = SMALL[cloud]
    return {
        "whole": (one("whole", machine), {"gpu": 1}),
        "sliced": (one("sliced", machine, sharing=SLICED), {"gpu": 4}),
        "mps": (one("mps", machine, sharing=MPS), {"gpu": 4}),
        "sku": (one("sku", machine, taints=[SKU]), {"gpu": 1}),
    }


def _single(cloud: str) -> dict[str, tuple[Pool, Document]]:
    machine, twice = CUTTABLE[cloud], Pool({"timeSlicing": {"replicas": 2}})
    return {
        "migsingle": (one("migsingle", machine, sharing=cut(cloud)), {"gpu": 7}),
        "migsliced": (one("migsliced", machine, sharing=cut(cloud, **twice)), {"gpu": 14}),
    }


def _mixed(cloud: str) -> dict[str, tuple[Pool, Document]]:
    machine, twice = CUTTABLE[cloud], Pool({"timeSlicing": {"replicas": 2}})
    name = f"mig-{SEVENTH[cloud]}"
    return {
        "migmixed": (one("migmixed", machine, sharing=cut(cloud, "mixed")), {name: 7}),
        "mixedsliced": (one("mixedsliced", machine, sharing=cut(cloud, "mixed", **twice)), {name: 14}),
    }


def _layouts() -> dict[str, tuple[Pool, Document]]:
    """Cut each GPU by a layout, which the operator's MIG manager knows by a config file of ours."""
    machine = CUTTABLE["eks"]
    first: Pool = {"layout": ["2g.20gb", "3g.40gb", "2g.20gb"], "strategy": "mixed"}
    other: Pool = {"layout": ["4g.40gb", "1g.10gb", "1g.10gb", "1g.10gb"], "strategy": "mixed"}
    return {
        "miglayout": (one("miglayout", machine, sharing={"mig": first}), {"mig-2g.20gb": 2, "mig-3g.40gb": 1}),
        "layoutsliced": (
            one("layoutsliced", machine, sharing={"mig": other, "timeSlicing": {"replicas": 2}}),
            {"mig-1g.10gb": 6, "mig-4g.40gb": 2},
        ),
    }


def _rocket() -> dict[str, tuple[Pool, Document]]:
    machine = {**CUTTABLE["eks"], "image": "bottlerocket"}
    small = {**SMALL["eks"], "image": "bottlerocket"}
    return {
        "rocket": (one("rocket", small), {"gpu": 1}),
        "rocketslice": (one("rocketslice", small, sharing=SLICED), {"gpu": 4}),
        "rocketmps": (one("rocketmps", small, sharing=MPS), {"gpu": 4}),
        "rocketmig": (one("rocketmig", machine, sharing=cut("eks")), {"gpu": 7}),
    }


@dataclass(frozen=True)
class Refusal:
    """A pool that is refused before any call, with the code and what to write instead."""

    cloud: str
    pool: Pool
    code: str
    fix: str


@dataclass(frozen=True)
class Ward:
    """A cluster and its pools.

    Attributes:
        pools: By name, with the devices its node must show.
        release: What gpukube installs: "chart", "operator", or "" for nothing.
        usual: Checks of the doctor that may find something though all is well.
    """

    cloud: str
    pools: Mapping[str, tuple[Pool, Document]]
    release: str
    usual: tuple[str, ...] = ()

    def document(self, key: str) -> Document:
        """Write the spec."""
        return spec(key, {key: address(self.cloud, key)}, [pool for pool, _ in self.pools.values()])

    def devices(self) -> Iterator[tuple[str, Document]]:
        """Return the devices of each pool."""
        return ((name, devices) for name, (_, devices) in self.pools.items())


WARDS: Mapping[str, Ward] = {
    "aks": Ward("aks", _uncut("aks") | _single("aks") | _mixed("aks"), "chart"),
    "eks": Ward("eks", _uncut("eks") | _rocket(), "chart"),
    "eks-single": Ward("eks", _uncut("eks") | _single("eks"), "operator"),
    # Until the MIG manager has cut it, a node shows its whole GPU; the kubelet keeps that name, with 0 devices.
    "eks-mixed": Ward(
        "eks",
        {"whole": _uncut("eks")["whole"], **_mixed("eks"), **_layouts()},
        "operator",
        usual=("stale-resource-names",),
    ),
    "gke": Ward("gke", _uncut("gke") | _single("gke"), ""),
}


ROCKET = {"image": "bottlerocket"}
REFUSED: Mapping[str, Refusal] = {
    "gke: MIG mixed": Refusal(
        "gke", {**CUTTABLE["gke"], "sharing": cut("gke", "mixed")}, "gke-mig-mixed", "write strategy: single"
    ),
    "gke: the chart": Refusal(
        "gke",
        {**SMALL["gke"], "devicePlugin": {"owner": "helm"}},
        "owner",
        "write devicePlugin.owner: cloud; or write devicePlugin.owner: operator, whose release disables GKE's plugin",
    ),
    "eks: MIG mixed on Bottlerocket": Refusal(
        "eks",
        {**CUTTABLE["eks"], **ROCKET, "sharing": cut("eks", "mixed")},
        "eks-bottlerocket-mixed",
        "write strategy: single, or image: al2023",
    ),
    "eks: the chart on Bottlerocket": Refusal(
        "eks",
        {**SMALL["eks"], **ROCKET, "devicePlugin": {"owner": "helm"}},
        "owner",
        "write devicePlugin.owner: cloud; or write image: al2023",
    ),
    "eks: the chart for MIG": Refusal(
        "eks",
        {**CUTTABLE["eks"], "sharing": cut("eks"), "devicePlugin": {"owner": "helm"}},
        "owner",
        "write devicePlugin.owner: auto, and the operator serves this pool too; or put the pool on another cluster",
    ),
    **{
        f"{cloud}: MPS on MIG": Refusal(
            cloud,
            {**CUTTABLE[cloud], "sharing": cut(cloud, **MPS)},
            "mps-with-mig",
            "remove one of them, or write timeSlicing instead of mps",
        )
        for cloud in CUTTABLE
        if cloud != "gke"  # Google's own plugin takes it
    },
}
"""What a cloud cannot do, and what to write instead."""
