"""Forms and limits of a node pool that GKE refuses, asked of the rules themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.nodes import node_shape
from gpukube_sandbox.gke.pools import fill_defaults
from gpukube_sandbox.gke.rules.facts import ClusterFacts
from gpukube_sandbox.gke.rules.pool import check_pool
from gpukube_sandbox.gke.wire.answers import GoogleError
from gpukube_sandbox.gke.wire.names import Place, zones_of
from sandbox_tests.gke.clients import t4_pool

if TYPE_CHECKING:
    from sandbox_tests.gke.clients import Json

PLANE = "1.34.1-gke.1829001"
ZONE = "us-central1-a"
FACTS = ClusterFacts("us-central1", PLANE, "REGULAR", {})
PREFIX_254 = ".".join(["a" * 63] * 3 + ["b" * 62])


def filled(sent: Json) -> wire.NodePool:
    """A pool as it is when it is checked."""
    pool = wire.NodePool(sent)
    fill_defaults(pool, PLANE, [ZONE], "REGULAR")
    return pool


def t4(**config: object) -> Json:
    return t4_pool("p", 1, **config)


def taint(key: str, value: str = "") -> Json:
    return t4(taints=[{"key": key, "value": value, "effect": "NO_SCHEDULE"}])


def pods(most: int) -> Json:
    return t4() | {"max_pods_constraint": {"max_pods_per_node": most}}


REFUSED: dict[str, tuple[Json, str]] = {
    "a zone that is none": (t4() | {"locations": ["us-central1-z"]}, 'Location "us-central1-z" does not exist.'),
    "an AI zone that is none": (t4() | {"locations": ["us-south1-ai9z"]}, 'Location "us-south1-ai9z" does not exist.'),
    "a label key with a blank": (t4(labels={"a b": "c"}), "Invalid node label 'a b': 'c'."),
    "a label value with a blank": (t4(labels={"a": "c d"}), "Invalid node label 'a': 'c d'."),
    "a label value of 64": (t4(labels={"a": "v" * 64}), f"Invalid node label 'a': '{'v' * 64}'."),
    "a label prefix of 254": (t4(labels={f"{PREFIX_254}/a": ""}), f"Invalid node label '{PREFIX_254}/a': ''."),
    "a label without a name": (t4(labels={"example.com/": ""}), "Invalid node label 'example.com/': ''."),
    "a taint key with a blank": (taint("x y"), "Invalid node taint 'x y': ''."),
    "a taint value with a blank": (taint("x", "q q"), "Invalid node taint 'x': 'q q'."),
    "seven pods": (pods(7), "Max_pods_per_node must be between 8 and 256."),
    "30 local SSDs": (t4(local_ssd_count=30), "Machine type n1-standard-4 does not support 30 local SSDs."),
    "nine local SSDs": (
        t4(ephemeral_storage_local_ssd_config={"local_ssd_count": 9}),
        "Machine type n1-standard-4 does not support 9 local SSDs.",
    ),
    "a version three minors old": (
        t4() | {"version": "1.31.9-gke.1"}, 'Node version "1.31.9-gke.1" is unsupported.',
    ),
    "a version of long ago": (t4() | {"version": "1.20.0-gke.1"}, 'Node version "1.20.0-gke.1" is unsupported.'),
}  # fmt: skip

ACCEPTED: dict[str, Json] = {
    "the fourth zone": t4() | {"locations": ["us-central1-f"]},
    "an AI zone": t4() | {"locations": ["us-central1-ai1a"]},
    "a label with a prefix and one without a value": t4(labels={"example.com/a_b.c": "D-e", "x": ""}),
    "a taint with a prefix and no value": taint("example.com/a"),
    "64 resource labels, one of letters of Greece": t4(
        resource_labels={**{f"k{at}": "" for at in range(63)}, "λ": "1-_ß"}
    ),
    "64 network tags, one of 63": t4(tags=["t" * 63, *(f"t{at}" for at in range(63))]),
    "metadata of 32 KB": t4(metadata={"k" * 127: "x" * 32 * 1024}),
    "settings of kubelet at their limits": t4(
        kubelet_config={
            "cpu_manager_policy": "static",
            "topology_manager": {"policy": "single-numa-node", "scope": "pod"},
            "memory_manager": {"policy": "Static"},
            "cpu_cfs_quota_period": "1s",
            "pod_pids_limit": 1024,
            "image_gc_low_threshold_percent": 10,
            "image_gc_high_threshold_percent": 85,
            "image_minimum_gc_age": "2m0s",
            "image_maximum_gc_age": "1.5h",
            "container_log_max_size": "500Mi",
            "container_log_max_files": 10,
            "allowed_unsafe_sysctls": ["kernel.msg*", "net.ipv4.route.min_pmtu"],
            "max_parallel_image_pulls": 5,
        }
    ),
    "a graceful shutdown of Spot nodes": t4(
        spot=True,
        kubelet_config={"shutdown_grace_period_seconds": 120, "shutdown_grace_period_critical_pods_seconds": 120},
    ),
    "sysctls and huge pages": t4(
        linux_node_config={"sysctls": {"vm.max_map_count": "262144"}, "hugepages": {"hugepage_size2m": 1024}}
    ),
    "the largest disk": t4(disk_size_gb=65536),
    "a CPU platform": t4(min_cpu_platform="Intel Skylake"),
    "a batch of all": t4()
    | {
        "upgrade_settings": {
            "strategy": "BLUE_GREEN",
            "blue_green_settings": {"standard_rollout_policy": {"batch_percentage": 1.0}},
        }
    },
    "eight pods": pods(8),
    "256 pods": pods(256),
    "24 local SSDs": t4(local_ssd_count=24),
    "a version two minors old": t4() | {"version": "1.32.9-gke.1"},
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_pool_when_a_form_is_broken_then_400_with_its_text(case: tuple[Json, str]) -> None:
    sent, text = case
    with pytest.raises(GoogleError) as caught:
        check_pool(filled(sent), FACTS)
    assert (caught.value.code, caught.value.message) == ("INVALID_ARGUMENT", text)


@pytest.mark.parametrize("sent", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_pool_when_the_forms_hold_then_accepted(sent: Json) -> None:
    pool = filled(sent)
    before = wire.NodePool.to_json(pool)
    check_pool(pool, FACTS)
    assert wire.NodePool.to_json(pool) == before


def test_node_when_its_pool_is_older_then_its_kubelet_too() -> None:
    pool = filled(t4() | {"version": "1.33.9-gke.1"})
    shape = node_shape(Place("demo", ZONE, "train", "p"), pool, "n", ZONE, 0)
    assert shape.kubelet == pool.version == "1.33.9-gke.1"


@pytest.mark.parametrize(
    ("region", "letters"), [("us-central1", "abcf"), ("us-east1", "bcd"), ("europe-west1", "bcd"), ("us-west4", "abc")]
)
def test_region_when_asked_for_its_zones_then_those_that_exist(region: str, letters: str) -> None:
    assert zones_of(region) == [f"{region}-{letter}" for letter in letters]
