"""How machines are bought and upgraded, and which versions they have: what cannot be, what seldom is, what costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.values import Capacity, Nodes, Upgrade
from gpukube.errors import SpecError
from gpukube.gpu.sharing import Sharing, Slicing
from gpukube_gke.pool.observe import observe_pool
from gpukube_gke.pool.purchase import buying_fields, translate_buying
from gpukube_gke.rules.versions import is_picky, require_version
from tests.builders import by_text
from tests.unit.gpukube_gke.targets import PROVIDER, ZONAL, gke_target, reserved

if TYPE_CHECKING:
    from gpukube.core.values import Target

A, B = "us-central1-a", "us-central1-b"
FROM_ZERO = Nodes(0, 0, 4, autoscaled=True)
FIXED = Nodes(2, 2, 2, autoscaled=False)
OURS = reserved("reservation", "ours")
NO_SURGE = Upgrade("0", "1")
MPS = Sharing(None, Slicing("mps", 4))
FAST: dict[str, object] = {"config": {"fastSocket": {"enabled": True}, "gvnic": {"enabled": True}}}


def found(target: Target) -> list[tuple[str, str, str]]:
    return [(d.code, d.where.source.removeprefix("spec."), d.severity) for d in PROVIDER.check(target)]


def flex(machine: str = "a2-highgpu-1g", **more: object) -> Target:
    return gke_target(machine, **{"nodes": FROM_ZERO, "capacity": reserved("flexStart"), **more})


GOOD = {
    "reservation": gke_target(zones=(A,), capacity=OURS, upgrade=NO_SURGE),
    "reservation of another project": gke_target(
        zones=(A,), capacity=reserved("reservation", "projects/lender/reservations/ours"), upgrade=NO_SURGE
    ),
    "block of a reservation": gke_target(
        zones=(A,), capacity=reserved("reservation", "ours/reservationBlocks/b1"), upgrade=NO_SURGE
    ),
    "reservation in the cluster's zone": gke_target(cluster=ZONAL, capacity=OURS, upgrade=NO_SURGE),
    "flex-start": flex(),
    "flex-start from one": flex(nodes=Nodes(1, 1, 4, autoscaled=True)),
    "flex-start for a week": flex(capacity=reserved("flexStart", run_s=604800)),
    "queued": flex(capacity=reserved("queued")),
    "flex-start, queued": flex(capacity=reserved("flexStartQueued")),
    "H200 of a reservation": gke_target("a3-ultragpu-8g", zones=(A,), capacity=OURS, upgrade=NO_SURGE),
    "B200 by flex-start": flex("a4-highgpu-8g"),
    "one H100 as Spot": gke_target("a3-highgpu-1g", capacity=Capacity("spot")),
    "one H100 queued": flex("a3-highgpu-1g", capacity=reserved("queued")),
    "eight H100 on demand": gke_target("a3-highgpu-8g"),
    "eight H100 at the edge": gke_target("a3-edgegpu-8g"),
    "more nodes in an upgrade": gke_target(upgrade=Upgrade("3", "0")),
    "unavailable nodes alone": gke_target(upgrade=Upgrade(None, "1")),
    "a minor version": gke_target(kubernetes_version="1.34"),
    "RTX on its first version": gke_target("g4-standard-48", kubernetes_version="1.34"),
    "a part of an RTX": gke_target("g4-standard-6", kubernetes_version="1.36"),
    "MPS on an old version": gke_target("g2-standard-8", sharing=MPS, kubernetes_version="1.27"),
    "Ubuntu with the newer driver": gke_target(
        "a3-ultragpu-8g", zones=(A,), capacity=OURS, upgrade=NO_SURGE, image="UBUNTU_CONTAINERD",
        kubernetes_version="1.34",
    ),
    "Ubuntu for an older GPU": gke_target(image="UBUNTU_CONTAINERD", kubernetes_version="1.32"),
    "COS with the same GPU": gke_target(
        "a3-ultragpu-8g", capacity=Capacity("spot"), image="COS_CONTAINERD", kubernetes_version="1.32"
    ),
    "enough pods": gke_target(max_pods=8),
    "latest driver": gke_target(driver_version="latest", image="COS_CONTAINERD"),
    "default driver on Ubuntu": gke_target(driver_version="default", image="UBUNTU_CONTAINERD"),
}  # fmt: skip


@pytest.mark.parametrize("target", GOOD.values(), ids=GOOD.keys())
def test_check_when_it_can_be_had_finds_nothing(target: Target) -> None:
    assert found(target) == []


FLEX_PATH = "capacity.reserved.gke.flexStart"
BAD = {
    "flex-start, fixed": (flex(nodes=FIXED), ("gke-flex-start", "nodes", "error")),
    "flex-start at the edge": (flex("a3-edgegpu-8g"), ("gke-flex-start", FLEX_PATH, "error")),
    "queued at the edge": (
        flex("a3-edgegpu-8g", capacity=reserved("queued")),
        ("gke-flex-start", "capacity.reserved.gke.queued", "error"),
    ),
    "eight days": (
        flex(capacity=reserved("flexStart", run_s=8 * 86400)),
        ("gke-run-duration", f"{FLEX_PATH}.maxRunDuration", "error"),
    ),
    "queued, fixed": (flex(nodes=FIXED, capacity=reserved("queued")), ("gke-queued", "nodes", "error")),
    "queued from one": (
        flex(nodes=Nodes(1, 1, 2, autoscaled=True), capacity=reserved("queued")), ("gke-queued", "nodes", "error"),
    ),
    "queued, one at first": (
        flex(nodes=Nodes(1, 0, 2, autoscaled=True), capacity=reserved("queued")), ("gke-queued", "nodes", "error"),
    ),
    "reservation anywhere": (
        gke_target(capacity=OURS, upgrade=NO_SURGE), ("gke-reservation-zone", "zones", "warning"),
    ),
    "reservation in two zones": (
        gke_target(capacity=OURS, upgrade=NO_SURGE, zones=(A, B), nodes=FIXED),
        ("gke-reservation-zone", "zones", "warning"),
    ),
    "one H100 on demand": (gke_target("a3-highgpu-1g"), ("gke-on-demand", "capacity.type", "warning")),
    "four H100 of a reservation": (
        gke_target("a3-highgpu-4g", zones=(A,), capacity=OURS, upgrade=NO_SURGE),
        ("gke-on-demand", "capacity.type", "warning"),
    ),
    "H200 on demand": (gke_target("a3-ultragpu-8g"), ("gke-on-demand", "capacity.type", "warning")),
    "GB200 on demand": (gke_target("a4x-highgpu-4g"), ("gke-reservation-only", "capacity.type", "error")),
    "a share of nodes": (
        gke_target(upgrade=Upgrade("33%", None)), ("gke-upgrade-share", "upgrade.maxSurge", "error"),
    ),
    "an unavailable share of nodes": (
        gke_target(upgrade=Upgrade("0", "50%")), ("gke-upgrade-share", "upgrade.maxUnavailable", "error"),
    ),
    "no surge": (gke_target(upgrade=Upgrade("0", None)), ("gke-upgrade-none", "upgrade.maxSurge", "error")),
    "no surge, none unavailable": (
        gke_target(upgrade=Upgrade("0", "0")), ("gke-upgrade-none", "upgrade.maxSurge", "error"),
    ),
    "21 nodes at once": (gke_target(upgrade=Upgrade("20", "1")), ("gke-upgrade-limit", "upgrade", "error")),
    "21 nodes at once, one of them unsaid": (
        gke_target(upgrade=Upgrade(None, "20")), ("gke-upgrade-limit", "upgrade", "error"),
    ),
    "flex-start with a surge": (
        flex(upgrade=Upgrade("1", None)), ("gke-upgrade-short-lived", "upgrade", "warning"),
    ),
    "surge of a reservation": (
        gke_target(zones=(A,), capacity=OURS), ("gke-upgrade-surge", "upgrade.maxSurge", "hint"),
    ),
    "surge of two": (
        gke_target(zones=(A,), capacity=OURS, upgrade=Upgrade("2", "1")),
        ("gke-upgrade-surge", "upgrade.maxSurge", "hint"),
    ),
    "RTX too early": (
        gke_target("g4-standard-48", kubernetes_version="1.33"), ("gke-version-floor", "kubernetesVersion", "error"),
    ),
    "a part of an RTX between two versions": (
        gke_target("g4-standard-6", kubernetes_version="1.33"), ("gke-version-floor", "kubernetesVersion", "error"),
    ),
    "MPS too early": (
        gke_target("g2-standard-8", sharing=MPS, kubernetes_version="1.26"),
        ("gke-version-floor", "kubernetesVersion", "error"),
    ),
    "flex-start too early": (flex(kubernetes_version="1.31"), ("gke-version-floor", "kubernetesVersion", "error")),
    "queued too early": (
        flex(capacity=reserved("queued"), kubernetes_version="1.27"),
        ("gke-version-floor", "kubernetesVersion", "error"),
    ),
    "driver too early": (
        gke_target(driver_version="latest", kubernetes_version="1.26"),
        ("gke-version-floor", "kubernetesVersion", "error"),
    ),
    "fast socket too early": (
        gke_target(native=FAST, kubernetes_version="1.24"), ("gke-version-floor", "kubernetesVersion", "error"),
    ),
    "a patch": (gke_target(kubernetes_version="1.34.1"), ("gke-version-moves", "kubernetesVersion", "hint")),
    "a build": (
        gke_target(kubernetes_version="1.34.1-gke.1829001"), ("gke-version-moves", "kubernetesVersion", "hint"),
    ),
    "Ubuntu with too old a driver": (
        flex("a3-ultragpu-8g", image="UBUNTU_CONTAINERD", kubernetes_version="1.33"),
        ("gke-ubuntu-driver", "image", "warning"),
    ),
    "few pods": (gke_target(max_pods=7), ("gke-max-pods", "maxPodsPerNode", "warning")),
    "a driver by number": (gke_target(driver_version="580.65.06"), ("gke-driver-version", "driver.version", "error")),
    "latest driver on Ubuntu": (
        gke_target(driver_version="latest", image="UBUNTU_CONTAINERD"),
        ("gke-driver-version", "driver.version", "error"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("target", "finding"), BAD.values(), ids=BAD.keys())
def test_check_when_it_cannot_be_had_says_so(target: Target, finding: tuple[str, str, str]) -> None:
    assert found(target) == [finding]


@pytest.mark.parametrize("changes", [{"driver_owner": "none"}, {"plugin_owner": "none"}])
def test_ubuntu_when_the_driver_is_ones_own_is_not_judged_by_that_of_gke(changes: dict[str, object]) -> None:
    target = flex("a3-ultragpu-8g", image="UBUNTU_CONTAINERD", kubernetes_version="1.33", **changes)

    assert [code for code, _, _ in found(target)] == ["gke-own-driver"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (gke_target(zones=(A,), capacity=OURS), "an upgrade adds nodes for a while (1 at a time)"),
        (
            gke_target(zones=(A,), capacity=OURS, upgrade=Upgrade("3")),
            "an upgrade adds nodes for a while (3 at a time)",
        ),
        (flex(capacity=reserved("flexStart", run_s=8 * 86400)), "maxRunDuration is 8 days"),
        (flex(capacity=reserved("queued", run_s=604801)), "maxRunDuration is 604801 seconds"),
        (gke_target(capacity=OURS, upgrade=NO_SURGE), "zones is not set"),
        (gke_target(capacity=OURS, upgrade=NO_SURGE, zones=(A, B), nodes=FIXED), "zones has 2"),
        (gke_target(kubernetes_version="1.33", machine=gke_target("g4-standard-48").machine), "is too old for RTX PRO"),
    ],
)
def test_finding_when_shown_names_what_was_asked_for(target: Target, message: str) -> None:
    (finding,) = PROVIDER.check(target)

    assert message in finding.seen


def test_capacity_when_it_is_said_to_be_on_demand_is_not_read_as_reserved() -> None:
    """A form that is left beside another type is refused by the spec's own rules; nothing of it may be sent."""
    target = gke_target(capacity=replace(OURS, type="on-demand"))

    assert by_text(buying_fields(target)) == {"capacity.type": "on-demand"}
    assert translate_buying(target) == {}


@pytest.mark.parametrize("changes", [{"driver_owner": "none"}, {"plugin_owner": "none"}])
def test_driver_version_when_gke_installs_none_is_refused(changes: dict[str, object]) -> None:
    target = gke_target(driver_version="default", **changes)

    assert ("gke-driver-version", "driver.version", "error") in found(target)


@pytest.mark.parametrize(
    ("target", "plane", "message"),
    [
        (
            gke_target("g4-standard-6"),
            "1.34.4-gke.9999999",
            "is too old for machines with a fraction of an RTX PRO 6000",
        ),
        (gke_target("g4-standard-6"), "1.35.2-gke.1484999", "is too old for machines with a fraction"),
        (gke_target("g4-standard-48"), "1.34.0-gke.1661999", "is too old for RTX PRO 6000 machines"),
        (flex(), "1.32.2-gke.1651999", "is too old for flex-start"),
        (gke_target(kubernetes_version="1.35"), "1.34.9-gke.1", "newer than the control plane"),
        (gke_target(kubernetes_version="1.34.2"), "1.34.1-gke.9", "newer than the control plane"),
        (gke_target(kubernetes_version="1.34.1-gke.10"), "1.34.1-gke.9", "newer than the control plane"),
    ],
)
def test_version_when_the_control_plane_is_too_old_is_told_before_any_call(
    target: Target, plane: str, message: str
) -> None:
    assert is_picky(target)
    with pytest.raises(SpecError, match=message) as caught:
        require_version(target, plane)
    assert [finding.code for finding in caught.value.diagnostics] == ["kubernetes-version"]


@pytest.mark.parametrize(
    ("target", "plane"),
    [
        (gke_target("g4-standard-6"), "1.34.5-gke.1153000"),
        (gke_target("g4-standard-6"), "1.35.2-gke.1485000"),
        (gke_target("g4-standard-6"), "1.36.0-gke.1"),
        (gke_target("g4-standard-48"), "1.34.0-gke.1662000"),
        (flex(), "1.32.2-gke.1652000"),
        (gke_target(kubernetes_version="1.34"), "1.34.0-gke.1"),
        (gke_target(kubernetes_version="1.34.1-gke.9"), "1.34.1-gke.9"),
        (gke_target(kubernetes_version="1.33.7"), "1.34.1-gke.9"),
    ],
)
def test_version_when_the_control_plane_is_new_enough_passes(target: Target, plane: str) -> None:
    require_version(target, plane)


def test_version_when_nothing_depends_on_it_is_not_looked_at() -> None:
    assert not is_picky(gke_target())


LIVE = {"config": {}, "locations": [A]}


@pytest.mark.parametrize(
    ("pool", "fields"),
    [
        ({}, {"capacity.type": "on-demand"}),
        ({"config": {"preemptible": True}}, {"capacity.type": "preemptible"}),
        (
            {"config": {"reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"}}},
            {"capacity.type": "on-demand"},
        ),
        (
            {
                "config": {
                    "reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["a", "b"]}
                }
            },
            {"capacity.type": "reserved", "capacity.reserved.gke": "reservation a, b"},
        ),
        (
            {"config": {"reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION"}}},
            {"capacity.type": "reserved", "capacity.reserved.gke": "reservation"},
        ),
        (
            {"queuedProvisioning": {"enabled": True}, "config": {"flexStart": True, "maxRunDuration": "600s"}},
            {
                "capacity.type": "reserved",
                "capacity.reserved.gke": "flexStartQueued",
                "capacity.reserved.gke.maxRunDuration": "600s",
            },
        ),
        (
            {"config": {"flexStart": True, "maxRunDuration": "604800s"}},
            {"capacity.type": "reserved", "capacity.reserved.gke": "flexStart"},
        ),
    ],
)
def test_observe_when_others_made_the_pool_says_how_it_is_bought(
    pool: dict[str, object], fields: dict[str, object]
) -> None:
    observed = by_text(observe_pool({**LIVE, **pool}).fields)

    assert {name: value for name, value in observed.items() if name.startswith("capacity.")} == fields


def test_price_when_capacity_is_reserved_is_not_asked() -> None:
    """Reserved capacity with the form of another cloud alone is the business of the spec's own rules."""
    target = replace(gke_target(), capacity=Capacity("reserved"))

    assert found(target) == []
