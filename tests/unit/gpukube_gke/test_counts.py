"""From the numbers of a spec to those of GKE, with both scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.resolve import resolve_targets
from gpukube.spec.load import load_specs
from gpukube_gke.observe import observe_pool
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


@pytest.mark.parametrize(
    ("nodes", "sent"),
    [
        ("{autoscaling: {min: 1, max: 4, initial: 2, scope: zone}}", (2, 1, 4)),
        ("{autoscaling: {min: 0, max: 1000, scope: zone}}", (0, 0, 1000)),
        ("{autoscaling: {min: 3, max: 12, initial: 6}}", (2, 1, 4)),
    ],
)
def test_bounds_when_sent_are_those_of_a_zone(tmp_path: Path, nodes: str, sent: tuple[int, int, int]) -> None:
    desired = desire(read(tmp_path, nodes))
    pool = cast("Mapping[str, object]", desired.create.params["nodePool"])
    scaling = cast("Mapping[str, int]", pool["autoscaling"])

    assert (pool["initialNodeCount"], scaling["minNodeCount"], scaling["maxNodeCount"]) == sent
    assert diff_fields(desired.fields, observe_pool({**pool, "status": "RUNNING"}).fields) == ()


@pytest.mark.parametrize(
    ("nodes", "code", "says"),
    [
        ("{autoscaling: {min: 0, max: 1001, scope: zone}}", "gke-node-count", "comes to 3003 nodes"),
        ("{autoscaling: {min: 0, max: 4}}", "gke-zones-divide", "is 4, which 3 zones do not divide"),
        ("{count: 5}", "gke-zones-divide", "is 5, which 3 zones do not divide"),
    ],
)
def test_bounds_when_gke_cannot_have_them_are_told(tmp_path: Path, nodes: str, code: str, says: str) -> None:
    (found,) = PROVIDER.check(read(tmp_path, nodes))

    assert found.code == code
    assert says in found.message
    assert (found.where.line, found.where.source) == (12, str(tmp_path / "pools.yaml"))
