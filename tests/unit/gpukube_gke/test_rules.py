"""What GKE refuses, in tables: changes of a good target -> code and field."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Capacity, Disk, Nodes, Taint
from gpukube.gpu.capacity import node_capacity
from gpukube.gpu.catalog import machines
from gpukube.gpu.mig import instances_per_gpu
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_gke.facts.partitions import PARTITIONS
from gpukube_gke.pool.fields import OPT_OUT_LABEL
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, ZONAL, gke_target

if TYPE_CHECKING:
    from gpukube.core.values import Target

G2 = "g2-standard-8"
A, B, C = (f"us-central1-{letter}" for letter in "abc")


def sliced(mode: str = "time-slicing", replicas: int = 4, *, rename: bool = False, fail: bool = True) -> Sharing:
    return Sharing(None, Slicing(mode, replicas, fail, rename))  # type: ignore[arg-type]  # one of two words


def cut(profile: str, strategy: str = "single", clients: int = 0) -> Sharing:
    slicing = sliced(replicas=clients).slicing if clients else None
    return Sharing(MigCut(profile, strategy), slicing)  # type: ignore[arg-type]  # one of two words


def fixed(count: int) -> Nodes:
    return Nodes(count, count, count, autoscaled=False)


def found(target: Target) -> list[tuple[str, str, str]]:
    return [(d.code, d.where.source.removeprefix("spec."), d.severity) for d in PROVIDER.check(target)]


GOOD = {
    "plain": gke_target(),
    "name of 40 characters": gke_target(name="a" + "b" * 39),
    "name with digits and dashes": gke_target(name="l4-pool-2"),
    "three zones": gke_target(zones=(A, B, C), nodes=fixed(6)),
    "no nodes": gke_target(zones=(A, B), nodes=fixed(0)),
    "a thousand nodes per zone": gke_target(zones=(A, B), nodes=fixed(2000)),
    "a project of an old domain": gke_target(
        cluster=replace(CLUSTER, identity={"project": "example.com:train-1", "location": "us-central1"})
    ),
    "a project by its number": gke_target(
        cluster=replace(CLUSTER, identity={"project": "123456789012", "location": "us-central1"})
    ),
    "a cluster of 40 characters": gke_target(cluster=replace(CLUSTER, name="a" + "-b" * 19 + "1")),
    "an AI zone": gke_target(zones=("us-central1-ai1a",)),
    "a cluster in an AI zone": gke_target(
        cluster=replace(ZONAL, identity={"project": "ml-prod", "location": "us-south1-ai1b"})
    ),
    "another zone of a zonal cluster's region": gke_target(cluster=ZONAL, zones=(B,)),
    "COS": gke_target(image="COS_CONTAINERD"),
    "Ubuntu": gke_target(image="UBUNTU_CONTAINERD"),
    "the smallest disk": gke_target(disk=Disk(10, "pd-standard")),
    "hyperdisk where nothing else boots": gke_target("g4-standard-48", disk=Disk(100, "hyperdisk-balanced")),
    "59 tags": gke_target(tags={f"t{at}": "" for at in range(59)}),
    "layout, which is judged elsewhere": gke_target(sharing=Sharing(MigCut("", "mixed", ("3g.20gb", "2g.10gb")))),
    "RTX in parts": gke_target("g4-standard-48", sharing=Sharing(MigCut("1g.24gb", "single"))),
    "48 clients": gke_target(G2, sharing=sliced(replicas=48)),
    "MPS": gke_target(G2, sharing=sliced("mps", 8, fail=False)),
    "MIG and time-slicing": gke_target(sharing=Sharing(MigCut("1g.5gb", "single"), sliced().slicing)),
    "Spot": gke_target(capacity=Capacity("spot")),
    "own labels": gke_target(labels={"team": "ml", "cloud.google.com/mine": "1"}),
    "own taints": gke_target(
        taints=(GPU_TAINT, Taint("nvidia.com/gpu", "x", "NoExecute"), Taint("a", "", "NoSchedule"))
    ),
    "tags": gke_target(tags={"cost_centre": "42", "env": ""}),
    "GKE's plugin asked for": gke_target(plugin_owner="cloud", driver_owner="cloud"),
}


@pytest.mark.parametrize("target", GOOD.values(), ids=GOOD.keys())
def test_check_when_all_is_well_finds_nothing(target: Target) -> None:
    assert found(target) == []


LONG = {f"example.com/{'n' * 50}{i}": "v" * 60 for i in range(9)}
BAD = {
    "upper case": (gke_target(name="L4"), "gke-name", "names.gke"),
    "digit first": (gke_target(name="4l", pool="4l"), "gke-name", "name"),
    "dash last": (gke_target(name="l-"), "gke-name", "names.gke"),
    "41 characters": (gke_target(name="a" * 41), "gke-name", "names.gke"),
    "a location of another cloud": (
        gke_target(cluster=replace(CLUSTER, identity={"project": "ml-prod", "location": "us-east-1"}), zones=(A,)),
        "gke-location",
        "spec",
    ),
    "a project by its name": (
        gke_target(cluster=replace(CLUSTER, identity={"project": "ML Prod", "location": "us-central1"})),
        "gke-project",
        "spec",
    ),
    "a project of five characters": (
        gke_target(cluster=replace(CLUSTER, identity={"project": "train", "location": "us-central1"})),
        "gke-project",
        "spec",
    ),
    "a cluster in capitals": (gke_target(cluster=replace(CLUSTER, name="Train")), "gke-cluster", "spec"),
    "a cluster by its path": (gke_target(cluster=replace(CLUSTER, name="clusters/train")), "gke-cluster", "spec"),
    "a cluster of 41 characters": (gke_target(cluster=replace(CLUSTER, name="a" * 41)), "gke-cluster", "spec"),
    "no zone": (gke_target(zones=("1",)), "gke-zone", "zones[0]"),
    "a region": (gke_target(zones=("us-central1",)), "gke-zone", "zones[0]"),
    "zone of another region": (gke_target(zones=(A, "europe-west4-a"), nodes=fixed(2)), "gke-zone", "zones[1]"),
    "odd count": (gke_target(zones=(A, B), nodes=fixed(3)), "gke-zones-divide", "nodes.count"),
    "odd initial": (
        gke_target(zones=(A, B), nodes=Nodes(3, 0, 4, autoscaled=True)),
        "gke-zones-divide",
        "nodes.autoscaling.initial",
    ),
    "1,001 nodes": (gke_target(nodes=fixed(1001)), "gke-node-count", "nodes.count"),
    "unknown image": (gke_target(image="bottlerocket"), "gke-image", "image"),
    "small disk": (gke_target(disk=Disk(9, None)), "gke-disk-size", "disk.sizeGiB"),
    "unknown disk": (gke_target(disk=Disk(100, "gp3")), "gke-disk-type", "disk.type"),
    "Hyperdisk Extreme": (gke_target(G2, disk=Disk(100, "hyperdisk-extreme")), "gke-disk-type", "disk.type"),
    "Hyperdisk Throughput": (gke_target(disk=Disk(100, "hyperdisk-throughput")), "gke-disk-type", "disk.type"),
    "hyperdisk on n1": (
        gke_target("n1-standard-8", ("T4", 1), disk=Disk(100, "hyperdisk-balanced")), "gke-disk-type", "disk.type",
    ),
    "pd on a4": (
        gke_target("a4-highgpu-8g", disk=Disk(100, "pd-ssd"), capacity=Capacity("spot")), "gke-disk-type", "disk.type",
    ),
    "pd on a3-ultragpu": (
        gke_target("a3-ultragpu-8g", disk=Disk(100, "pd-ssd"), capacity=Capacity("spot")), "gke-disk-type", "disk.type",
    ),
    "60 tags": (gke_target(tags={f"t{at}": "" for at in range(60)}), "gke-tag-count", "tags"),
    "mixed": (gke_target(sharing=cut("1g.5gb", "mixed")), "gke-mig-mixed", "sharing.mig.strategy"),
    "4g.20gb": (gke_target(sharing=cut("4g.20gb")), "gke-mig-profile", "sharing.mig.profile"),
    "1g.10gb on 40 GB": (gke_target(sharing=cut("1g.10gb")), "gke-mig-profile", "sharing.mig.profile"),
    "renamed": (gke_target(G2, sharing=sliced(rename=True)), "gke-renamed", "sharing.timeSlicing.renameByDefault"),
    "renamed MPS": (gke_target(G2, sharing=sliced("mps", rename=True)), "gke-renamed", "sharing.mps.renameByDefault"),
    "49 clients": (gke_target(G2, sharing=sliced(replicas=49)), "gke-clients", "sharing.timeSlicing.replicas"),
    "price": (gke_target(capacity=Capacity("spot", 0.5)), "gke-spot-price", "capacity.maxPrice"),
    "Kubernetes' label": (gke_target(labels={"node.k8s.io/x": "1"}), "gke-label", 'labels["node.k8s.io/x"]'),
    "opt-out label": (gke_target(labels={OPT_OUT_LABEL: "true"}), "gke-label", f'labels["{OPT_OUT_LABEL}"]'),
    "long labels": (gke_target(labels=LONG), "gke-labels-length", "labels"),
    "second GPU taint": (
        gke_target(taints=(GPU_TAINT, Taint("nvidia.com/gpu", "x", "NoSchedule"))), "gke-taint", "taints[0]",
    ),
    "arch taint": (
        gke_target(taints=(GPU_TAINT, Taint("kubernetes.io/arch", "arm64", "NoSchedule"))), "gke-taint", "taints[0]",
    ),
    "queued taint": (
        gke_target(taints=(Taint("cloud.google.com/gke-queued", "true", "NoSchedule"),), gpu_taint=False),
        "gke-taint",
        "taints[0]",
    ),
    "tag with capitals": (gke_target(tags={"Env": "dev"}), "gke-tag", 'tags["Env"]'),
    "tag value with capitals": (gke_target(tags={"env": "Dev"}), "gke-tag", 'tags["env"]'),
    "Google's tag": (gke_target(tags={"goog-x": "1"}), "gke-tag", 'tags["goog-x"]'),
    "operator's driver": (gke_target(driver_owner="operator"), "gke-driver-owner", "driver.owner"),
    "driverless": (gke_target(driver_owner="cloud", plugin_owner="none"), "gke-driverless", "driver.owner"),
}  # fmt: skip


@pytest.mark.parametrize(("target", "code", "field"), BAD.values(), ids=BAD.keys())
def test_check_when_gke_would_refuse_says_which_field(target: Target, code: str, field: str) -> None:
    assert found(target) == [(code, field, "error")]


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"sharing": sliced(fail=False)}, ["gke-request-limit"]),
        ({"name": "nap-1"}, ["gke-name-automatic"]),
        ({"labels": {"cloud.google.com/gke-nvidia-gpu-dra-driver": "true"}}, ["gke-dra-label"]),
        ({"labels": {"cloud.google.com/gke-spot": "true"}}, ["gke-label"]),
        ({"tags": {"größe": "groß-1"}, "disk": Disk(None, "pd-ssd")}, []),
        ({"driver_owner": "none"}, ["gke-own-driver"]),
        ({"plugin_owner": "none"}, ["gke-own-driver"]),
        ({"plugin_owner": "none", "driver_owner": "none"}, ["gke-own-driver"]),
    ],
)
def test_check_when_it_works_with_care_warns(changes: dict[str, object], codes: list[str]) -> None:
    assert [(code, severity) for code, _, severity in found(gke_target(G2, **changes))] == [
        (code, "warning") for code in codes
    ]


@pytest.mark.parametrize(
    ("zones", "count", "message"),
    [
        ((), 1001, "nodes.count is 1001, more nodes than a pool in one zone can have"),
        ((A, B), 2002, "nodes.count is 2002, more nodes than a pool in 2 zones can have"),
    ],
)
def test_count_when_it_is_too_much_is_told_for_all_zones(zones: tuple[str, ...], count: int, message: str) -> None:
    (finding,) = PROVIDER.check(gke_target(zones=zones, nodes=fixed(count)))

    assert (finding.seen, finding.fix) == (message, "request at most 1000 nodes per zone, or split the pool")


def test_labels_when_they_are_as_long_as_may_be_pass() -> None:
    """The marks of gpukube count too, that of protection whether it is set or not."""
    marks = len("gpukube.io/ownerml-platformgpukube.io/poola100miggpukube.io/protecttrue")
    names = {f"k{at}": "v" * 60 for at in range(10, 24)}
    left = 1024 - marks - sum(len(key) + len(value) for key, value in names.items())

    assert found(gke_target(labels={**names, "l" * (left - 1): "v"})) == []
    assert found(gke_target(labels={**names, "l" * left: "v"})) == [("gke-labels-length", "labels", "error")]


def test_check_when_google_spells_a_size_in_two_ways_warns() -> None:
    target = gke_target("g4-standard-48", sharing=cut("1g.24gb+gfx"))

    assert found(target) == [("gke-mig-spelling", "sharing.mig.profile", "warning")]
    assert "write 1g.24gb unless" in PROVIDER.check(target)[0].fix


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("cos", "write COS_CONTAINERD, or remove image"),
        ("Ubuntu", "write UBUNTU_CONTAINERD, or remove image"),
        ("al2023", "write COS_CONTAINERD or UBUNTU_CONTAINERD, or remove image"),
    ],
)
def test_image_when_it_is_nearly_one_is_told_the_one(written: str, fix: str) -> None:
    assert [finding.fix for finding in PROVIDER.check(gke_target(image=written))] == [fix]


def test_check_when_somebody_else_counts_mig_instances_warns() -> None:
    target = gke_target(sharing=cut("1g.5gb"), plugin_owner="none", driver_owner="none")

    assert [code for code, _, _ in found(target)] == ["gke-own-plugin", "gke-own-driver"]


def test_mig_when_the_dra_driver_publishes_then_nothing_is_said_of_a_plugin() -> None:
    target = gke_target(sharing=cut("1g.5gb"), plugin_owner="dra")
    assert "gke-own-plugin" not in [code for code, _, _ in found(target)]


@pytest.mark.parametrize("machine", ["g4-standard-6", "g4-standard-12", "g4-standard-24"])
def test_check_when_the_machine_has_a_part_of_a_gpu_refuses_sharing_and_ubuntu(machine: str) -> None:
    assert found(gke_target(machine, sharing=sliced())) == [("gke-fractional", "sharing", "error")]
    assert found(gke_target(machine, image="UBUNTU_CONTAINERD")) == [("gke-image", "image", "error")]
    assert found(gke_target(machine)) == []


def test_locations_when_the_cluster_is_elsewhere_are_compared_with_it() -> None:
    assert CLUSTER.identity["location"] == "us-central1"
    assert found(gke_target(zones=("us-central2-a",))) == [("gke-zone", "zones[0]", "error")]


CUT = [(kind, profile) for kind, profiles in PARTITIONS.items() for profile in profiles]


@pytest.mark.parametrize(("kind", "profile"), CUT)
def test_partition_when_counted_by_gke_is_what_the_catalog_predicts(kind: str, profile: str) -> None:
    models = {machine.model for machine in machines("gke") if machine.accelerator == kind}

    assert {instances_per_gpu(model, profile) for model in models} == {PARTITIONS[kind][profile]}


def test_partitions_when_a_machine_can_be_cut_are_known() -> None:
    assert {machine.accelerator for machine in machines("gke") if machine.mig_capable} == PARTITIONS.keys()


@pytest.mark.parametrize(
    ("machine", "sharing", "devices"),
    [
        ("a2-highgpu-1g", cut("1g.5gb"), 7),
        ("a2-highgpu-8g", cut("1g.5gb"), 56),
        ("a2-megagpu-16g", cut("1g.5gb", clients=3), 336),
        ("a2-ultragpu-4g", cut("2g.20gb", clients=5), 60),
        ("g2-standard-48", sliced("mps", 8), 32),
        (G2, sliced(replicas=4), 4),
        ("g4-standard-6", Sharing(), 1),
    ],
)
def test_capacity_when_predicted_is_what_gke_advertises(machine: str, sharing: Sharing, devices: int) -> None:
    """336 and 60 stand in GKE's own cluster autoscaler, in a test and in a comment."""
    target = gke_target(machine, sharing=sharing)

    assert [code for code, _, severity in found(target) if severity == "error"] == []
    assert node_capacity(target.machine, sharing) == {"nvidia.com/gpu": devices}
