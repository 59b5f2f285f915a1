"""Targets on the GKE cluster of the examples, with everything that a test does not care about filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.owners import solve_ownership
from gpukube.core.resolve import promise_of
from gpukube.core.values import Capacity, ClusterRef, Ownership, Reservation
from gpukube.gpu.catalog import parse_model, require_machine
from gpukube_gke import GkeProvider
from tests.builders import make_target

if TYPE_CHECKING:
    from gpukube.core.values import Desired, Target

CLUSTER = ClusterRef("train-gke", "gke", "train", {"project": "ml-prod", "location": "us-central1"})
ZONAL = replace(CLUSTER, identity={"project": "ml-prod", "location": "us-central1-a"})
PROVIDER = GkeProvider()


def gke_target(machine: str = "a2-highgpu-1g", gpu: tuple[str, int] | None = None, /, **changes: object) -> Target:
    """Make a target; `gpu` is model and count for N1 machines, `changes` are fields of Target."""
    asked = (parse_model(gpu[0]), gpu[1]) if gpu else None
    made = replace(make_target(), cluster=CLUSTER, machine=require_machine("gke", machine, asked))
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def reserved(form: str, name: str = "", run_s: int | None = None) -> Capacity:
    """Make reserved capacity."""
    return Capacity("reserved", None, Reservation(form, name, run_s))


def desire(target: Target) -> Desired:
    """Translate as the engine does."""
    assert [found.render() for found in PROVIDER.check(target) if found.severity == "error"] == []
    ownership = solve_ownership(target, PROVIDER.stack(target))
    assert isinstance(ownership, Ownership)
    return PROVIDER.desired(target, ownership, promise_of(target))
