"""Native fields: each is one of the protobufs, and what is written is checked against the table."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from google.cloud import container_v1 as wire
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types

from gpukube.core.fields import FieldPath
from gpukube.spec.source.positions import parse_path
from gpukube_gke.pool.native import MANAGED, NATIVE, REFUSED, check_native, flatten_native
from tests.unit.gpukube_gke.targets import gke_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_gke.pool.members import Leaf


def sample(leaf: Leaf) -> object:
    samples: dict[object, object] = {
        "bool": True,
        "int": 3,
        "str": "x",
        "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "tags": ["x"],
        "seconds": "604800s",
        "range": "10.96.0.0/14",
        "subnetwork": "projects/p/regions/us-central1/subnetworks/s",
        "share": 0.5,
        "strs": ["x", "y"],
        "map": {"tagKeys/1": "tagValues/2"},
        "metadata": {"owner": "me"},
        "pods": [{"subnetwork": "s", "secondaryPodRange": "r", "maxPodsPerNode": {"maxPodsPerNode": "32"}}],
        "affinities": [{"key": "k", "operator": "IN", "values": ["v"]}],
        "domains": [{"fqdns": ["r.example.com"], "gcpSecretManagerCertificateConfig": {"secretUri": "s"}}],
        "registries": [{"server": "r.example.com", "hosts": [{"host": "m.example.com", "overridePath": True}]}],
        "networks": [{"network": "n", "subnetwork": "s"}, {"network": "m", "subnetwork": "t"}],
        "disks": [{"diskImage": "projects/p/global/images/i", "mode": "CONTAINER_IMAGE_CACHE"}],
    }
    return leaf[-1] if isinstance(leaf, tuple) else samples[leaf]


def nested(path: str, value: object) -> dict[str, object]:
    for name in reversed(path.split(".")):
        value = {name: [value] if name == "accelerators" else value}
    assert isinstance(value, dict)
    return value


def networks(value: object) -> dict[str, object]:
    return {"networkConfig": {"additionalNodeNetworkConfigs": value}}


def disks(number: object) -> dict[str, object]:
    return {"config": {"ephemeralStorageLocalSsdConfig": {"localSsdCount": number}}}


def batch(share: object) -> dict[str, object]:
    policy = {"batchPercentage": share}
    return {"upgradeSettings": {"blueGreenSettings": {"standardRolloutPolicy": policy}}}


@pytest.mark.parametrize("path", NATIVE)
def test_field_when_read_by_the_protobufs_comes_back_the_same(path: str) -> None:
    written = nested(path, sample(NATIVE[path]))
    read: Mapping[str, object] = MessageToDict(wire.NodePool.pb(wire.NodePool.from_json(json.dumps(written))))

    assert flatten_native(read, live=True).items() >= flatten_native(written).items()
    assert check_native(gke_target(native=written)) == []


def test_tables_when_compared_share_no_field() -> None:
    counted = Counter([*NATIVE, *MANAGED, *REFUSED])
    doubled = [path for path, count in counted.items() if count > 1]
    assert not doubled, f"keep these in one of NATIVE, MANAGED and REFUSED in gpukube_gke/pool/native.py: {doubled}"


@pytest.mark.parametrize(
    ("native", "code", "fix"),
    [
        ({"initialNodeCount": 3}, "gke-native-managed", "write nodes.count instead"),
        ({"config": {"spot": True}}, "gke-native-managed", "write capacity.type instead"),
        ({"config": {"accelerators": [{"gpuPartitionSize": "1g.5gb"}]}}, "gke-native-managed", "sharing.mig.profile"),
        ({"config": {"accelerators": []}}, "gke-native-value", "a list with one mapping"),
        ({"etag": "1"}, "gke-native-refused", "remove it"),
        ({"autoscaling": {"autoprovisioned": True}}, "gke-native-refused", "remove it"),
        ({"config": {"gvinc": {"enabled": True}}}, "gke-native-unknown", "did you mean gke.config.gvnic"),
        ({"zzz": 1}, "gke-native-unknown", "remove it"),
        ({"config": {"gvnic": True}}, "gke-native-value", "write a mapping"),
        ({"config": {"gvnic": {"enabled": "yes"}}}, "gke-native-value", "write true or false"),
        (disks(number=True), "gke-native-value", "write a whole number"),
        (disks(-1), "gke-native-value", "write a whole number, 0 or more"),
        (disks(2**31), "gke-native-value", "write a whole number"),
        (disks("1"), "gke-native-value", "write a whole number"),
        ({"config": {"tags": ["a", 1]}}, "gke-native-value", "write a list of lower-case letters"),
        ({"config": {"tags": ["Upper"]}}, "gke-native-value", "write a list of lower-case letters"),
        ({"config": {"tags": "gpu"}}, "gke-native-value", "write a list"),
        ({"config": {"oauthScopes": ["cloud-platform"]}}, "gke-native-value", "a list of full scope URLs"),
        ({"config": {"minCpuPlatform": 1}}, "gke-native-value", "write a string"),
        ({"config": {"bootDiskKmsKey": "k"}}, "gke-native-managed", "write disk.kmsKey"),
        ({"config": {"metadata": {"user-data": "x"}}}, "gke-native-value", "none of them reserved by GKE"),
        ({"config": {"metadata": {"a.b": "x"}}}, "gke-native-value", "keys of letters, digits, - and _"),
        ({"config": {"metadata": {"a": 1}}}, "gke-native-value", "a mapping of strings to strings"),
        ({"config": {"metadata": "x"}}, "gke-native-value", "a mapping of strings to strings"),
        ({"config": {"storagePools": "x"}}, "gke-native-value", "write a list of strings"),
        ({"config": {"resourceManagerTags": {"tags": ["a"]}}}, "gke-native-value", "a mapping of strings"),
        (
            {"config": {"containerdConfig": {"registryHosts": [{"sever": "x"}]}}},
            "gke-native-value",
            "write a list of {",
        ),
        ({"config": {"soleTenantConfig": {"nodeAffinities": ["x"]}}}, "gke-native-value", "{key, operator, values}"),
        (batch(1.5), "gke-native-value", "a number above 0, at most 1"),
        (batch(share=True), "gke-native-value", "a number above 0, at most 1"),
        ({"networkConfig": {"podIpv4CidrBlock": "10.0.0.0"}}, "gke-native-value", "or a range size, such as /21"),
        ({"networkConfig": {"podIpv4CidrBlock": "/33"}}, "gke-native-value", "or a range size, such as /21"),
        ({"config": {"machine_type": "g2-standard-4"}}, "gke-native-unknown", "did you mean instanceType"),
        ({"initial_node_count": 1}, "gke-native-unknown", "did you mean nodes.count"),
        ({"node_config": {"spot": True}}, "gke-native-unknown", "did you mean gke.config"),
        ({"config": {"accelerators": [{"acceleratorTyp": "x"}]}}, "gke-native-unknown", "did you mean gpu.model"),
        ({"config": {"accelerators": {"acceleratorType": "x"}}}, "gke-native-managed", "write gpu.model"),
        ({"upgradeSettings": {"maxSurge": 1}}, "gke-native-managed", "write upgrade.maxSurge"),
        ({"upgradeSettings": {"maxUnavailable": 1}}, "gke-native-managed", "write upgrade.maxUnavailable"),
        ({"maxPodsConstraint": {"maxPodsPerNode": 32}}, "gke-native-managed", "write maxPodsPerNode"),
        ({"queuedProvisioning": {"enabled": True}}, "gke-native-managed", "capacity.reserved.gke.queued"),
        ({"config": {"flexStart": True}}, "gke-native-managed", "capacity.reserved.gke.flexStart"),
        ({"config": {"reservationAffinity": {"key": "k"}}}, "gke-native-managed", "capacity.reserved.gke.reservation"),
        (
            {"config": {"accelerators": [{"gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"}}]}},
            "gke-native-managed",
            "write driver.version",
        ),
        ({"config": {"bootDisk": {"sizeGb": 1}}}, "gke-native-managed", "write disk"),
        (networks("n"), "gke-native-value", "write a list of {network: NAME, subnetwork: NAME}"),
        (networks(["n"]), "gke-native-value", "write a list of {network: NAME, subnetwork: NAME}"),
        (networks([{"network": "n"}]), "gke-native-value", "write a list of {network"),
        (networks([{"network": "n", "subnetwork": "s", "x": "y"}]), "gke-native-value", "write a list of {network"),
        (networks([{"network": "n", "subnetwork": 1}]), "gke-native-value", "write a list of {network"),
        (
            {"config": {"secondaryBootDisks": [{"diskImage": "i", "mode": "CACHE"}]}},
            "gke-native-value",
            "{diskImage: NAME, mode: CONTAINER_IMAGE_CACHE}",
        ),
        (
            {"config": {"workloadMetadataConfig": {"mode": "SECURE"}}},
            "gke-native-value",
            "GCE_METADATA or GKE_METADATA",
        ),
        ({"upgradeSettings": {"strategy": "FAST"}}, "gke-native-value", "write SURGE, BLUE_GREEN or SHORT_LIVED"),
        ({"version": "1.34"}, "gke-native-managed", "write kubernetesVersion"),
        ({"config": {"maxRunDuration": "7d"}}, "gke-native-value", "write seconds, such as 600s"),
        ({"config": {"consolidationDelay": "10m"}}, "gke-native-value", "write seconds"),
        (
            {"config": {"kubeletConfig": {"cpuManagerPolicy": "static"}}},
            "gke-native-managed",
            "kubelet.cpuManagerPolicy",
        ),
        ({"placementPolicy": {"type": "COMPACT"}}, "gke-native-managed", "write placement"),
        ({"networkConfig": {"acceleratorNetworkProfile": "auto"}}, "gke-native-managed", "write network.highSpeed"),
        ({"config": {"linuxNodeConfig": {"sysctls": {"a": "1"}}}}, "gke-native-managed", "write sysctls"),
        ({"config": {"labels": {"a": "1"}}}, "gke-native-managed", "write labels"),
        ({"config": {"sandboxConfig": {"type": "GVISOR"}}}, "gke-native-refused", "remove it"),
    ],
)
def test_check_when_a_native_field_is_wrong_says_what_to_write(native: dict[str, object], code: str, fix: str) -> None:
    (found,) = check_native(gke_target(native=native))

    assert found.code == code
    assert fix in found.fix


def test_flatten_when_live_fills_in_what_proto3_leaves_out() -> None:
    live = flatten_native({"config": {"localNvmeSsdBlockConfig": {"localSsdCount": "2"}}}, live=True)

    assert live[FieldPath.parse("gke.config.localNvmeSsdBlockConfig.localSsdCount")] == 2
    assert live[FieldPath.parse("gke.management.autoUpgrade")] is False
    assert live[FieldPath.parse("gke.bestEffortProvisioning.minProvisionNodes")] == 0
    assert flatten_native({}) == {}


@pytest.mark.parametrize("range_", ["", "/21", "/8", "10.96.0.0/14"])
def test_range_when_it_is_one_of_the_three_forms_passes(range_: str) -> None:
    assert check_native(gke_target(native={"networkConfig": {"podIpv4CidrBlock": range_}})) == []


@pytest.mark.parametrize("name", ["a b[", "", '"', "x.y", "[0]", "ü"])
def test_name_when_it_is_no_path_is_told_all_the_same(name: str) -> None:
    (found,) = check_native(gke_target(native={"config": {name: 1}}))

    assert (found.code, found.where.source) == ("gke-native-unknown", f"spec.{_place(name)}")


def _place(name: str) -> str:
    place = f"gke.config.{name}" if name.isalnum() else f"gke.config[{json.dumps(name)}]"
    assert parse_path(place) == ("gke", "config", name)
    return place
