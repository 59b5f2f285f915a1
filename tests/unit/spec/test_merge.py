"""Defaults under pools: what is merged, what is dropped, where it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.spec.samples import load_text, problems_of, spec_of

if TYPE_CHECKING:
    from pathlib import Path

GROUP = (
    "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/ml"
    "/providers/Microsoft.Compute/capacityReservationGroups/a100"
)
A_GROUP = f"{{capacityReservationGroup: {GROUP}}}"

# defaults, what the pool adds, what the pool is in the end (keys as in a spec)
CASES: dict[str, tuple[str, str, dict[str, object]]] = {
    "scalars: the pool wins": ("{gpuTaint: false}", "gpuTaint: true", {"gpuTaint": True}),
    "scalars: defaults fill": ("{gpuTaint: false}", "", {"gpuTaint": False}),
    "mappings are merged": (
        "{labels: {a: x, b: x}}",
        "labels: {b: y, c: y}",
        {"labels": {"a": "x", "b": "y", "c": "y"}},
    ),
    "deep mappings are merged": ("{aks: {p: {q: 1, r: 1}}}", "aks: {p: {r: 2}}", {"aks": {"p": {"q": 1, "r": 2}}}),
    "lists are replaced": ('{zones: ["1", "2"]}', 'zones: ["3"]', {"zones": ("3",)}),
    "an empty list is the pool's": ('{zones: ["1"]}', "zones: []", {"zones": ()}),
    "count drops autoscaling": (
        "{nodes: {autoscaling: {min: 0, max: 3}}}",
        "nodes: {count: 2}",
        {"nodes": {"count": 2, "autoscaling": None}},
    ),
    "autoscaling drops count": (
        "{nodes: {count: 2}}",
        "nodes: {autoscaling: {min: 0, max: 3}}",
        {"nodes": {"count": None, "autoscaling": {"min": 0, "max": 3, "initial": None, "scope": "pool"}}},
    ),
    "autoscaling is merged with autoscaling": (
        "{nodes: {autoscaling: {min: 0, max: 3}}}",
        "nodes: {autoscaling: {max: 9}}",
        {"nodes": {"count": None, "autoscaling": {"min": 0, "max": 9, "initial": None, "scope": "pool"}}},
    ),
    "another way of sharing drops the default one": (
        "{sharing: {mig: {profile: 1g.5gb}}}",
        "sharing: {mps: {replicas: 2}}",
        {"sharing": {"mig": None, "timeSlicing": None, "mps": {"replicas": 2, "renameByDefault": False}}},
    ),
    "the same way of sharing is merged": (
        "{sharing: {mig: {profile: 1g.5gb, strategy: mixed}, timeSlicing: {replicas: 2}}}",
        "sharing: {mig: {profile: 2g.10gb}}",
        {
            "sharing": {
                "mig": {"profile": "2g.10gb", "layout": (), "strategy": "mixed"},
                "timeSlicing": None,
                "mps": None,
            }
        },
    ),
    "empty sharing is no sharing": (
        "{sharing: {mps: {replicas: 2}}}",
        "sharing: {}",
        {"sharing": {"mig": None, "timeSlicing": None, "mps": None}},
    ),
    "another capacity drops the default's price": (
        "{capacity: {type: spot, maxPrice: 3}}",
        "capacity: {type: on-demand}",
        {"capacity": {"type": "on-demand", "maxPrice": None, "reserved": None}},
    ),
    "the same capacity keeps it": (
        "{capacity: {type: spot, maxPrice: 3}}",
        "capacity: {type: spot}",
        {"capacity": {"type": "spot", "maxPrice": 3.0, "reserved": None}},
    ),
    "another form of reserved capacity drops the default one": (
        "{capacity: {type: reserved, reserved: {gke: {queued: {}}, aks: " + A_GROUP + "}}}",
        "capacity: {reserved: {gke: {reservation: a100}}}",
        {
            "capacity": {
                "type": "reserved",
                "maxPrice": None,
                "reserved": {
                    "eks": None,
                    "aks": {"capacityReservationGroup": GROUP},
                    "gke": {"reservation": "a100", "flexStart": None, "queued": None},
                },
            }
        },
    ),
    "a layout drops the default profile": (
        "{sharing: {mig: {profile: 1g.5gb, strategy: mixed}}}",
        "sharing: {mig: {layout: [3g.20gb, 3g.20gb]}}",
        {
            "sharing": {
                "mig": {"profile": None, "layout": ("3g.20gb", "3g.20gb"), "strategy": "mixed"},
                "timeSlicing": None,
                "mps": None,
            }
        },
    ),
}


@pytest.mark.parametrize(("defaults", "extra", "expected"), CASES.values(), ids=CASES)
def test_defaults_when_merged_then_the_pool_is(
    defaults: str, extra: str, expected: dict[str, object], tmp_path: Path
) -> None:
    nodes = "" if "nodes" in defaults + extra else "    nodes: {count: 1}\n"
    pool = f"  - name: a\n    clusters: [train-aks]\n    gpu: {{model: T4-16GB, count: 1}}\n{nodes}    {extra}\n"
    loaded = load_text(tmp_path, spec_of(pool, defaults))
    dumped = loaded.spec.pools[0].model_dump(by_alias=True)
    assert {key: dumped[key] for key in expected} == expected


MACHINES = {
    "gpu drops instanceType": ("{instanceType: x}", "gpu: {model: T4-16GB, count: 1}", ("T4-16GB", None)),
    "instanceType drops gpu": ("{gpu: {model: T4-16GB, count: 1}}", "instanceType: x", (None, "x")),
    "gpu is merged with gpu": ("{gpu: {model: T4-16GB}}", "gpu: {count: 1}", ("T4-16GB", None)),
    "types are merged": ("{instanceType: {eks: a, aks: a}}", "instanceType: {eks: b}", (None, "a")),
    "one type replaces a map": ("{instanceType: {aks: a}}", "instanceType: b", (None, "b")),
    "both from the defaults": ("{instanceType: x, gpu: {model: T4-16GB, count: 1}}", "zones: []", ("T4-16GB", "x")),
}


@pytest.mark.parametrize(("defaults", "extra", "expected"), MACHINES.values(), ids=MACHINES)
def test_machine_when_defaults_and_pool_name_one_then_they_are_not_mixed(
    defaults: str, extra: str, expected: tuple[str | None, str | None], tmp_path: Path
) -> None:
    pool = f"  - name: a\n    clusters: [train-aks]\n    nodes: {{count: 1}}\n    {extra}\n"
    merged = load_text(tmp_path, spec_of(pool, defaults)).spec.pools[0]
    assert (merged.gpu.model if merged.gpu else None, merged.instance_type_on("aks")) == expected


def test_position_when_value_comes_from_defaults_then_is_theirs(tmp_path: Path) -> None:
    pool = "  - {name: a, clusters: [train-aks], gpu: {count: 1}, nodes: {count: 1}}\n"
    loaded = load_text(tmp_path, spec_of(pool, "{gpu: {model: T4-16GB}}"))
    assert loaded.positions.at("pools[0].gpu.model").line == 8
    assert loaded.positions.at("pools[0].gpu.count").line == 10


def test_mistake_in_defaults_when_many_pools_take_it_then_is_reported_once(tmp_path: Path) -> None:
    pools = "".join(
        f"  - {{name: p{n}, clusters: [train-aks], gpu: {{model: T4-16GB, count: 1}}}}\n" for n in range(20)
    )
    found = problems_of(tmp_path, spec_of(pools, "{nodes: {count: two}, colour: red, labels: {a: 1}}"))
    assert sorted(one.seen.split(" ")[0] for one in found) == [
        "defaults",
        "defaults.labels.a",
        "defaults.nodes.count",
    ]


def test_broken_rule_in_defaults_when_many_pools_take_it_then_is_reported_once(tmp_path: Path) -> None:
    pools = "".join(
        f"  - {{name: p{n}, clusters: [train-aks], gpu: {{model: T4-16GB, count: 1}}, nodes: {{count: 1}}}}\n"
        for n in range(20)
    )
    found = problems_of(tmp_path, spec_of(pools, "{capacity: {maxPrice: 1}}"))
    assert [one.code for one in found] == ["max-price"]


def test_name_when_in_defaults_then_is_refused_and_not_merged(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path, spec_of("  - {clusters: [train-aks], instanceType: x, nodes: {count: 1}}\n", "{name: a}")
    )
    assert sorted(one.code for one in found) == ["missing-key", "unknown-key"]
