"""What a change does to a live pool: every field has a row, and some depend on the values."""

from __future__ import annotations

import pytest
from google.cloud import container_v1 as wire

from gpukube.core.fields import FieldPath
from gpukube.core.values import Change
from gpukube_gke.pool.native import NATIVE, native_path
from gpukube_gke.pool.updates import INTENT_ROWS, NATIVE_ROWS, find_row

CALLS = {"update_node_pool", "set_node_pool_size", "set_node_pool_autoscaling", "set_node_pool_management"}


@pytest.mark.parametrize("row", [*INTENT_ROWS.values(), *NATIVE_ROWS.values()], ids=lambda row: row.field)
def test_row_when_listed_says_what_how_and_by_whom(row: object) -> None:
    found = next(one for one in (*INTENT_ROWS.values(), *NATIVE_ROWS.values()) if one is row)

    assert found.sentence
    assert found.source
    assert bool(found.call) == (found.kind in ("in-place", "disruptive"))
    assert not found.call or found.call in CALLS
    assert not found.call or hasattr(wire.ClusterManagerClient, found.call)


def test_native_rows_when_compared_with_the_table_are_the_same_fields() -> None:
    assert {native_path(path) for path in NATIVE} == {_without_key(path) for path in NATIVE_ROWS}


def _without_key(path: FieldPath) -> FieldPath:
    return FieldPath(*path[:-1]) if path.key == "*" else path


@pytest.mark.parametrize(
    ("field", "old", "new", "kind"),
    [
        ("instanceType", "a2-highgpu-1g", "a2-highgpu-2g", "replace"),
        ("instanceType", "a2-highgpu-1g", "a2-ultragpu-1g", "replace"),
        ("instanceType", "g2-standard-8", "g2-standard-12", "disruptive"),
        ("instanceType", "n1-standard-4", "n1-standard-8", "disruptive"),
        ("instanceType", "n1-standard-4", "g2-standard-4", "replace"),
        ("instanceType", None, "g2-standard-4", "replace"),
        ("gpu", "1 x nvidia-tesla-t4", "2 x nvidia-tesla-t4", "replace"),
        ("sharing.mig.profile", "1g.5gb", "2g.10gb", "replace"),
        ("sharing.timeSlicing.replicas", 2, 4, "disruptive"),
        ("sharing.mps.replicas", None, 4, "disruptive"),
        ("driver", "cloud", "none", "disruptive"),
        ("devicePlugin", "cloud", "none", "replace"),
        ("capacity.type", "spot", "on-demand", "replace"),
        ("nodes.count", 1, 2, "in-place"),
        ("nodes.count", 2, 1, "disruptive"),
        ("zones", ("a",), ("a", "b"), "disruptive"),
        ("nodes.count", 2, None, "in-place"),
        ("nodes.count", None, 2, "disruptive"),
        ("nodes.autoscaling.max", 3, None, "in-place"),
        ("zones", ("a", "b"), ("a",), "disruptive"),
        ("taints", (), ("a=b:NoSchedule",), "in-place"),
        ("taints", (), ("a=b:NoExecute",), "disruptive"),
        ("taints", ("a=b:NoExecute",), (), "in-place"),
        ("labels[team]", "a", "b", "in-place"),
        ("tags[env]", "a", "b", "disruptive"),
        ("gke.config.gvnic.enabled", False, True, "disruptive"),
        ("gke.config.minCpuPlatform", None, "x", "replace"),
        ("gke.unheard.of", None, "x", "refused"),
    ],
)
def test_row_when_the_values_are_known_is_the_fitting_one(field: str, old: object, new: object, kind: str) -> None:
    row = find_row(Change(FieldPath.parse(field), old, new))

    assert (row.kind, str(row.field)) == (kind, field)
    assert bool(row.call) == (kind in ("in-place", "disruptive"))
