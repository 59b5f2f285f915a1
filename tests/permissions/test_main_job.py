"""The main job on three clouds with nothing but what is printed: by `apply` all of it, by `plan` what only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from tests.builders import SUBSCRIPTION
from tests.cli.test_three_clouds import cloud_writes
from tests.networks import install_networks
from tests.permissions.granting import become, grant, make
from tests.permissions.policies import EXTRAS, SPEC, printed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Gpukube, Result
    from tests.permissions.policies import Json

CLUSTERS = ("train-eks", "train-aks", "train-gke")
WORKLOAD: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "infer", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "infer"}},
        "template": {
            "metadata": {"labels": {"app": "infer"}},
            "spec": {
                "nodeSelector": {"gpukube.io/pool": "shared"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "containers": [{"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
            },
        },
    },
}


def run(gpukube: Gpukube, spec: Path, *words: str, code: int = 0) -> Result:
    """Run one command, which ends with a code."""
    result = gpukube(*words, "-f", spec)
    assert result.code == code, f"{words}\n{result.out}{result.err}"
    return result


def changed(spec: Path, at: Path, *changes: tuple[str, str]) -> Path:
    """Write a spec with pieces replaced."""
    text = spec.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    at.write_text(text)
    return at


def test_apply_when_nothing_else_is_allowed_then_the_whole_job(gpukube: Gpukube, tmp_path: Path) -> None:
    run(gpukube, SPEC, "pool", "list")  # declares the clusters
    install_networks(gpukube, SPEC)
    allowed = printed("apply", *EXTRAS)
    grant(gpukube.info, allowed)

    run(gpukube, SPEC, "pool", "plan", "--live-prices")
    run(gpukube, SPEC, "pool", "create")
    run(gpukube, SPEC, "pool", "plan", "diff")
    run(gpukube, SPEC, "pool", "list")
    run(gpukube, SPEC, "pool", "verify", "--probe")
    run(gpukube, SPEC, "doctor")
    for cluster in CLUSTERS:
        make(gpukube.info, cluster, WORKLOAD)
    become(gpukube.info, allowed)

    in_place = changed(
        SPEC, tmp_path / "a.yaml", ("{team: ml}", "{cost: gpu}\n    labels: {a/b: c}"), ("replicas: 4", "replicas: 2")
    )
    run(gpukube, in_place, "pool", "apply", "-y", "--allow-disruption")
    run(gpukube, in_place, "pool", "scale", "shared", "--nodes", "2")
    other = changed(
        in_place,
        tmp_path / "b.yaml",
        ("g4dn.xlarge", "g4dn.2xlarge"),
        ("NC4as_T4_v3, gke", "NC8as_T4_v3, gke"),
        ("{cost: gpu}", "{}"),
    )
    run(gpukube, other, "pool", "apply", "-y", "--allow-disruption", "--replace", "surge", "--pool", "shared")
    disk = changed(other, tmp_path / "c.yaml", ("name: shared\n", "name: shared\n    disk: {sizeGiB: 200}\n"))
    change = ("pool", "apply", "-y", "--allow-disruption", "--pool", "shared", "--cluster")
    run(gpukube, disk, *change, "train-eks")
    daemon.upgrade_cluster(gpukube.info, "train", images="20270101")
    run(gpukube, disk, *change, "train-eks", "--upgrade")
    run(gpukube, other, *change, "train-aks", "--upgrade")
    run(gpukube, other, "pool", "drain", "shared", "-y", "--cluster", "train-gke")
    run(gpukube, other, "pool", "release", "shared", "-y", "--cluster", "train-eks")
    run(gpukube, other, "pool", "delete", "reserved", "fast", "placed", "family", "-y")


def test_catalog_when_nothing_else_is_allowed_then_refreshed_and_spot_has_prices(gpukube: Gpukube) -> None:
    run(gpukube, SPEC, "pool", "list")
    grant(gpukube.info, printed("apply", *EXTRAS))

    spot = ("--live-prices", "--set", "pools.shared.capacity.type=spot", "--cluster", "train-eks")
    run(gpukube, SPEC, "pool", "plan", *spot)
    for place in (("eks",), ("aks", "--subscription", SUBSCRIPTION), ("gke", "--project", "ml-prod")):
        result = gpukube("catalog", "refresh", "--provider", *place)
        assert result.code == 0, result.out + result.err


def test_create_when_the_account_never_had_a_node_group_then_its_roles_are_found_and_made(gpukube: Gpukube) -> None:
    run(gpukube, SPEC, "pool", "list")
    clusters = daemon.status(gpukube.info)["clusters"]
    assert isinstance(clusters, list)
    daemon.tamper(gpukube.info, next(one["id"] for one in clusters if one["provider"] == "eks"), "system", delete=True)
    grant(gpukube.info, printed("apply"))

    run(gpukube, SPEC, "pool", "create", "--cluster", "train-eks", "--pool", "reserved")

    assert {"iam:ListRoles", "iam:CreateServiceLinkedRole"} <= daemon.used_permissions(gpukube.info)


def test_plan_when_only_reading_is_allowed_then_reads_and_a_change_is_refused_by_name(gpukube: Gpukube) -> None:
    gpukube.made("-f", SPEC)
    install_networks(gpukube, SPEC)
    grant(gpukube.info, printed("plan", *EXTRAS))

    run(gpukube, SPEC, "pool", "plan", "--live-prices", "--upgrade")
    run(gpukube, SPEC, "pool", "plan", "diff")
    run(gpukube, SPEC, "pool", "list")
    run(gpukube, SPEC, "pool", "verify")
    found = run(gpukube, SPEC, "doctor")

    assert "error[" not in found.out
    assert "warning[kube-rights]" in found.out
    assert cloud_writes(gpukube) == []


@pytest.mark.parametrize(
    ("cluster", "permission"),
    [
        ("train-eks", "create daemonsets.apps"),
        ("train-aks", "create daemonsets.apps"),
        ("train-gke", "container.clusters.update"),
    ],
)
def test_create_when_only_reading_is_allowed_then_refused_by_name_before_anything_is_changed(
    cluster: str, permission: str, gpukube: Gpukube
) -> None:
    run(gpukube, SPEC, "pool", "list")
    grant(gpukube.info, printed("plan"))

    refused = run(gpukube, SPEC, "pool", "create", "--cluster", cluster, code=5)

    for word in permission.split():
        assert word.partition(".")[0] in refused.out + refused.err, refused.out + refused.err
    assert cloud_writes(gpukube) == [] or cluster == "train-gke"  # Google has no way to ask, and refuses the first
