"""Native fields: each is one of the protobufs, and what is written is checked against the table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from google.cloud import container_v1 as wire
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types

from gpukube_gke.native import MANAGED, NATIVE, REFUSED, Leaf, check_native, flatten_native, merge_native
from tests.unit.gpukube_gke.targets import gke_target

if TYPE_CHECKING:
    from collections.abc import Mapping


def sample(leaf: Leaf) -> object:
    samples: dict[object, object] = {
        "bool": True,
        "int": 3,
        "str": "x",
        "strings": ["x"],
        "version": "1.34.1-gke.1829001",
        "seconds": "604800s",
    }
    return leaf[-1] if isinstance(leaf, tuple) else samples[leaf]


def nested(path: str, value: object) -> dict[str, object]:
    for name in reversed(path.split(".")):
        value = {name: [value] if name == "accelerators" else value}
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("path", NATIVE)
def test_field_when_read_by_the_protobufs_comes_back_the_same(path: str) -> None:
    written = nested(path, sample(NATIVE[path]))
    read: Mapping[str, object] = MessageToDict(wire.NodePool.pb(wire.NodePool.from_json(json.dumps(written))))

    assert flatten_native(read, live=True).items() >= flatten_native(written).items()
    assert check_native(gke_target(native=written)) == []


def test_tables_when_compared_share_no_field() -> None:
    assert not NATIVE.keys() & MANAGED.keys()
    assert not (NATIVE.keys() | MANAGED.keys()) & REFUSED.keys()


@pytest.mark.parametrize(
    ("native", "code", "fix"),
    [
        ({"initialNodeCount": 3}, "gke-native-managed", "write nodes.count instead"),
        ({"config": {"spot": True}}, "gke-native-managed", "write capacity.type instead"),
        ({"config": {"accelerators": [{"gpuPartitionSize": "1g.5gb"}]}}, "gke-native-managed", "sharing.mig.profile"),
        ({"config": {"accelerators": []}}, "gke-native-value", "a list with one mapping"),
        ({"etag": "1"}, "gke-native-refused", "take it away"),
        ({"autoscaling": {"autoprovisioned": True}}, "gke-native-refused", "take it away"),
        ({"config": {"gvinc": {"enabled": True}}}, "gke-native-unknown", "write gke.config.gvnic"),
        ({"zzz": 1}, "gke-native-unknown", "take it away"),
        ({"config": {"gvnic": True}}, "gke-native-value", "write a mapping"),
        ({"config": {"gvnic": {"enabled": "yes"}}}, "gke-native-value", "write true or false"),
        ({"upgradeSettings": {"maxSurge": True}}, "gke-native-value", "write a whole number"),
        ({"config": {"tags": ["a", 1]}}, "gke-native-value", "write a list of texts"),
        ({"config": {"bootDiskKmsKey": 1}}, "gke-native-value", "write a text"),
        ({"upgradeSettings": {"strategy": "FAST"}}, "gke-native-value", "write one of SURGE, BLUE_GREEN, SHORT_LIVED"),
        ({"version": "1.34"}, "gke-native-value", "write a whole version, such as 1.34.1-gke.1829001"),
        ({"version": "latest"}, "gke-native-value", "write a whole version"),
        ({"config": {"maxRunDuration": "7d"}}, "gke-native-value", "write seconds, such as 600s"),
        ({"config": {"consolidationDelay": "10m"}}, "gke-native-value", "write seconds"),
        ({"config": {"kubeletConfig": {"cpuManagerPolicy": "static"}}}, "gke-native-refused", "take it away"),
        ({"placementPolicy": {"type": "SPREAD"}}, "gke-native-value", "write COMPACT"),
    ],
)
def test_check_when_a_native_field_is_wrong_says_what_to_write(native: dict[str, object], code: str, fix: str) -> None:
    (found,) = check_native(gke_target(native=native))

    assert found.code == code
    assert fix in found.fix


def test_merge_when_messages_meet_keeps_what_is_not_named() -> None:
    merged = merge_native(
        {"a": {"b": 1, "c": 2}, "l": ["x", "y"], "config": {"accelerators": [{"p": 1, "q": {"r": 1}}]}},
        {"a": {"b": 3}, "l": ["z"], "config": {"accelerators": [{"q": {"s": 2}}]}, "n": True},
    )

    assert merged == {
        "a": {"b": 3, "c": 2},
        "l": ["z"],
        "config": {"accelerators": [{"p": 1, "q": {"r": 1, "s": 2}}]},
        "n": True,
    }


def test_flatten_when_live_fills_in_what_proto3_leaves_out() -> None:
    live = flatten_native({"maxPodsConstraint": {"maxPodsPerNode": "110"}}, live=True)

    assert live["gke.maxPodsConstraint.maxPodsPerNode"] == 110
    assert live["gke.management.autoUpgrade"] is False
    assert live["gke.upgradeSettings.maxUnavailable"] == 0
    assert flatten_native({}) == {}
