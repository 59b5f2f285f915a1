"""What a change does, field by field, and that no field of a pool is without a row."""

from __future__ import annotations

import pytest

from gpukube.core.fields import CAPACITY_TYPE, COUNT, FieldPath
from gpukube.core.values import Capacity, Change, Disk, Nodes, Reservation, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_eks.pool.updates import INTENT_ROWS, NATIVE_ROWS, find_row
from tests.builders import make_observed
from tests.unit.gpukube_eks.samples import desired_of, eks_target

CASES = [
    ("instanceType", "a", "b", "replace"),
    ("image", "AL2023_x86_64_NVIDIA", "BOTTLEROCKET_x86_64_NVIDIA", "replace"),
    ("capacity.type", "on-demand", "spot", "replace"),
    ("zones", ("us-east-1a",), ("us-east-1b",), "replace"),
    ("nodes.count", 1, 2, "in-place"),
    ("nodes.count", 2, 1, "disruptive"),
    ("nodes.count", 2, None, "in-place"),
    ("nodes.autoscaling.min", None, 1, "in-place"),
    ("nodes.autoscaling.max", 3, 5, "in-place"),
    ("nodes.autoscaling.max", 5, 3, "disruptive"),
    ("disk.sizeGiB", 100, 200, "disruptive"),
    ("disk.type", "gp2", "gp3", "disruptive"),
    ("sharing.mig.profile", "1g.5gb", "2g.10gb", "disruptive"),
    ("sharing.timeSlicing.replicas", 2, 4, "disruptive"),
    ("labels[team]", "a", "b", "in-place"),
    ("labels[nvidia.com/device-plugin.config]", "c-1", "c-2", "disruptive"),
    ("labels[nvidia.com/mig.config]", "all-1g.5gb", "all-2g.10gb", "disruptive"),
    ("taints", (), ("a=b:NoSchedule",), "in-place"),
    ("taints", (), ("a=b:NoExecute",), "disruptive"),
    ("taints", ("a=b:NoExecute",), (), "in-place"),
    ("tags[cost]", None, "x", "in-place"),
    ("deletionProtection", True, False, "in-place"),
    ("eks.subnets", (), ("subnet-a",), "replace"),
    ("eks.nodeRole", "a", "b", "replace"),
    ("eks.releaseVersion", "a", "b", "disruptive"),
    ("upgrade.maxSurge", "0", "chosen by EKS", "in-place"),
    ("upgrade.maxUnavailable", "1", "33%", "in-place"),
    ("capacity.reserved.eks.capacityBlock", "cr-1", "cr-2", "replace"),
    ("capacity.reserved.eks.capacityReservation", "cr-1", "cr-2", "disruptive"),
    ("maxPodsPerNode", 110, 60, "disruptive"),
    ("kubernetesVersion", "1.33", "1.34", "disruptive"),
    ("kubernetesVersion", "1.34", "1.33", "refused"),
    ("eks.nodeRepairConfig.enabled", False, True, "in-place"),
    ("surprise", 1, 2, "refused"),
]


@pytest.mark.parametrize(("field", "old", "new", "kind"), CASES)
def test_change_when_looked_up_has_its_kind(field: str, old: object, new: object, kind: str) -> None:
    row = find_row(Change(FieldPath.parse(field), old, new))

    assert (str(row.field), row.kind) == (field, kind)
    assert row.sentence


@pytest.mark.parametrize(
    ("old", "new", "beside", "kind"),
    [
        ("on-demand", "reserved", "capacity.reserved.eks.capacityReservation", "disruptive"),
        ("reserved", "on-demand", "capacity.reserved.eks.capacityReservation", "disruptive"),
        ("on-demand", "reserved", "capacity.reserved.eks.capacityBlock", "replace"),
        ("reserved", "on-demand", "capacity.reserved.eks.capacityBlock", "replace"),
        ("spot", "reserved", "capacity.reserved.eks.capacityReservation", "replace"),
        ("reserved", "spot", "capacity.reserved.eks.capacityReservation", "replace"),
    ],
)
def test_capacity_when_changed_is_replaced_unless_only_the_template_says_it(
    old: str, new: str, beside: str, kind: str
) -> None:
    change = Change(CAPACITY_TYPE, old, new)

    row = find_row(change, (change, Change(FieldPath.parse(beside), "cr-1", None)))

    assert (str(row.field), row.kind) == ("capacity.type", kind)


@pytest.mark.parametrize(
    ("nodes", "kind", "words"),
    [
        (3, "disruptive", "terminates nodes at once"),
        (2, "in-place", "keeps the existing nodes"),
        (1, "in-place", "adds nodes"),
        (None, "in-place", "or terminates nodes above the size at once"),
    ],
)
def test_size_when_bounds_become_fixed_then_told_by_the_live_nodes(nodes: int | None, kind: str, words: str) -> None:
    live = make_observed(desired_of(eks_target(nodes=Nodes(1, 1, 3, autoscaled=True))), nodes=nodes)

    row = find_row(Change(COUNT, None, 2), (), live)

    assert (row.kind, words in row.sentence) == (kind, True), row.sentence


def test_rows_when_read_say_where_they_come_from() -> None:
    for row in (*INTENT_ROWS.values(), *NATIVE_ROWS.values()):
        assert row.source
        assert bool(row.call) == (row.kind in ("in-place", "disruptive"))


def test_fields_when_a_pool_has_all_of_them_have_a_row_each() -> None:
    target = eks_target(
        nodes=Nodes(1, 1, 3, autoscaled=True),
        capacity=Capacity("reserved", reservation=Reservation("capacityReservation", "cr-1")),
        kubernetes_version="1.34",
        max_pods=60,
        upgrade=Upgrade("0", "33%"),
        zones=("us-east-1a",),
        disk=Disk(200, "gp3"),
        image="bottlerocket",
        sharing=Sharing(MigCut("1g.5gb", "single"), Slicing("time-slicing", 2)),
        labels={"team": "x"},
        tags={"cost": "x"},
        native={"nodeRole": "arn"},
    )

    kinds = {field: find_row(Change(field, value, None)).kind for field, value in desired_of(target).fields.items()}

    assert "refused" not in kinds.values()
