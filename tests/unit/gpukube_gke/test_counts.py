"""From the numbers of a spec to those of GKE, with both scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.resolve import resolve_targets
from gpukube.spec.loading.load import load_specs
from gpukube_gke.pool.observe import observe_pool
from tests.unit.gpukube_gke.targets import PROVIDER, desire

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpukube.core.values import Target

SPEC = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {{name: ml-platform}}
clusters:
  train-gke: {{provider: gke, project: ml-prod, location: us-central1, name: train}}
pools:
  - name: l4
    clusters: [train-gke]
    instanceType: g2-standard-8
    zones: [{zones}]
    nodes: {nodes}
"""
ZONES = "us-central1-a, us-central1-b, us-central1-c"


def read(path: Path, nodes: str, zones: str = ZONES) -> Target:
    file = path / "pools.yaml"
    file.write_text(SPEC.format(nodes=nodes, zones=zones))
    (spec,) = load_specs([str(file)], environ={})
    ((target,), problems) = resolve_targets(spec)
    assert not problems
    return target


def of_zone(low: int, high: int) -> dict[str, object]:
    return {"enabled": True, "minNodeCount": low, "maxNodeCount": high}


def of_pool(low: int, high: int) -> dict[str, object]:
    return {"enabled": True, "totalMinNodeCount": low, "totalMaxNodeCount": high}


@pytest.mark.parametrize(
    ("nodes", "initial", "scaling"),
    [
        ("{autoscaling: {min: 1, max: 4, initial: 2, scope: zone}}", 2, of_zone(1, 4)),
        ("{autoscaling: {min: 0, max: 1000, scope: zone}}", 0, of_zone(0, 1000)),
        ("{autoscaling: {min: 3, max: 12, initial: 6}}", 2, of_pool(3, 12)),
        ("{autoscaling: {min: 0, max: 8}}", 0, of_pool(0, 8)),
        ("{autoscaling: {min: 1, max: 8, initial: 3}}", 1, of_pool(1, 8)),
        ("{autoscaling: {min: 0, max: 3000}}", 0, of_pool(0, 3000)),
    ],
)
def test_bounds_when_sent_are_of_the_scope_that_is_written(
    tmp_path: Path, nodes: str, initial: int, scaling: dict[str, object]
) -> None:
    target = read(tmp_path, nodes)
    desired = desire(target)
    pool = cast("Mapping[str, object]", desired.create.params["nodePool"])

    assert PROVIDER.check(target) == []
    assert (pool["initialNodeCount"], pool["autoscaling"]) == (initial, scaling)
    assert diff_fields(desired.fields, observe_pool({**pool, "status": "RUNNING"}).fields) == ()


@pytest.mark.parametrize(
    ("nodes", "initial", "message"),
    [
        ("{autoscaling: {min: 1, max: 8}}", 1, "the pool starts with 3 nodes, 1 in each zone"),
        ("{autoscaling: {min: 4, max: 8}}", 2, "the pool starts with 6 nodes, 2 in each zone"),
        ("{autoscaling: {min: 1, max: 2}}", 0, "the pool starts with no nodes"),
    ],
)
def test_min_when_the_zones_do_not_divide_it_is_kept_and_the_first_nodes_are_told(
    tmp_path: Path, nodes: str, initial: int, message: str
) -> None:
    target = read(tmp_path, nodes)
    (found,) = PROVIDER.check(target)
    pool = cast("Mapping[str, object]", desire(target).create.params["nodePool"])

    assert (found.code, found.severity) == ("gke-zones-divide", "warning")
    assert message in found.seen
    assert pool["initialNodeCount"] == initial
    assert pool["autoscaling"] == of_pool(target.nodes.minimum, target.nodes.maximum)


@pytest.mark.parametrize(
    ("nodes", "code", "message"),
    [
        ("{autoscaling: {min: 0, max: 1001, scope: zone}}", "gke-node-count", "is 3003, more nodes"),
        ("{autoscaling: {min: 0, max: 3001}}", "gke-node-count", "is 3001, more nodes"),
        ("{autoscaling: {min: 0, max: 8, initial: 4}}", "gke-zones-divide", "is 4, which is not divisible by 3 zones"),
        ("{count: 5}", "gke-zones-divide", "is 5, which is not divisible by 3 zones"),
    ],
)
def test_bounds_when_gke_cannot_have_them_are_told(tmp_path: Path, nodes: str, code: str, message: str) -> None:
    (found,) = PROVIDER.check(read(tmp_path, nodes))

    assert found.code == code
    assert message in found.seen
    assert (found.where.line, found.where.source) == (12, str(tmp_path / "pools.yaml"))
