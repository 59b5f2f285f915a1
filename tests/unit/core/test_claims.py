"""Pools of the DRA driver: versions, what NVIDIA says, and changes from and to other owners, on three clouds."""

from __future__ import annotations

from base64 import b64decode
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.core.claims import advise_claims, check_claims, check_claims_cluster
from gpukube.core.fields import PLUGIN, label
from gpukube.core.owners import ADVERTISER_LABEL, solve_ownership
from gpukube.core.resolve import promise_of
from gpukube.core.values import Change, Nodes, Ownership
from gpukube.engine.offline import load
from gpukube.engine.plan.prepare import Filters, prepare
from gpukube.errors import SpecError
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube.provider import load_provider
from tests.builders import CLUSTER, make_target
from tests.unit.cluster.builders import desire
from tests.unit.gpukube_eks.samples import eks_target
from tests.unit.gpukube_gke.targets import gke_target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpukube.core.values import Desired, Target

CLOUDS: dict[str, Callable[..., Target]] = {"eks": eks_target, "aks": make_target, "gke": gke_target}
ROOTS = {"eks": "/", "aks": "/", "gke": "/home/kubernetes/bin/nvidia"}
MORE = {"gke": {"kubeletPlugin.priorityClassName": ""}}
SCALED = Nodes(1, 0, 4, autoscaled=True)


def made(cloud: str, **changes: object) -> Desired:
    target = CLOUDS[cloud](**changes)
    provider = load_provider(cloud)
    ownership = solve_ownership(target, provider.stack(target))
    assert isinstance(ownership, Ownership), ownership
    return provider.desired(target, ownership, promise_of(target))


@pytest.mark.parametrize(
    ("version", "severities"),
    [
        ("1.33.9", ["error"]), ("1.33", ["error"]), ("v1.34.1-gke.100", ["warning"]), ("1.34.2", []), ("1.34", []),
        ("1.36.0-eks-1", []), ("unknown", []), ("", []),
    ],
)  # fmt: skip
def test_cluster_when_older_than_the_api_or_nvidia_s_advice_then_said(version: str, severities: list[str]) -> None:
    found = check_claims_cluster(CLUSTER, version, [desire(plugin_owner="dra"), desire(pool="other")])
    assert [one.severity for one in found] == severities
    assert all(one.code == "dra-kubernetes" and version in one.seen and "other" not in one.seen for one in found)
    assert check_claims_cluster(CLUSTER, version, [desire()]) == []


@pytest.mark.parametrize(
    ("version", "codes"),
    [("1.33", ["dra-kubernetes"]), ("1.34", []), ("", [])],
)
def test_pool_when_of_dra_then_old_nodes_are_refused(version: str, codes: list[str]) -> None:
    found = check_claims(make_target(plugin_owner="dra", kubernetes_version=version))
    assert [one.code for one in found] == codes
    assert check_claims(make_target(kubernetes_version="1.33")) == []


@pytest.mark.parametrize("cloud", CLOUDS)
def test_pool_when_of_dra_then_the_cloud_s_nodes_have_one_root_and_no_plugin(cloud: str) -> None:
    pool = made(cloud, plugin_owner="dra")
    assert pool.ownership.values == {"nvidiaDriverRoot": ROOTS[cloud], **MORE.get(cloud, {})}
    assert pool.labels["gpukube.io/advertiser"] == "dra"
    assert pool.labels["nvidia.com/gpu.present"] == "true"
    assert "nvidia.com/device-plugin.config" not in pool.labels
    assert pool.promise.per_node == {"gpu.nvidia.com": pool.target.machine.devices}


def test_pool_when_of_dra_on_gke_then_its_plugin_and_driver_are_off_and_its_autoscaler_knows() -> None:
    pool = made("gke", plugin_owner="dra")
    config: Any = pool.create.params["nodePool"]
    accelerator = config["config"]["accelerators"][0]
    assert accelerator["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "INSTALLATION_DISABLED"}
    labels = config["config"]["labels"]
    assert labels["gke-no-default-nvidia-gpu-device-plugin"] == "true"
    assert labels["cloud.google.com/gke-nvidia-gpu-dra-driver"] == "true"


def test_pool_when_the_operator_installs_its_driver_on_aks_then_the_root_is_the_operator_s() -> None:
    pool = made("aks", plugin_owner="dra", driver_owner="operator")
    assert pool.ownership.values == {"nvidiaDriverRoot": "/run/nvidia/driver"}
    assert pool.ownership.operated


def test_pool_when_of_dra_on_eks_then_the_autoscaler_is_not_told_of_nvidia_com_gpu() -> None:
    pool = made("eks", plugin_owner="dra", nodes=SCALED)
    request: Any = pool.create.params["nodegroup"]
    assert "k8s.amazonaws.com/accelerator" not in pool.labels
    assert not [key for key in request["tags"] if "node-template/resources" in key]


def test_pool_when_of_dra_on_bottlerocket_then_user_data_turns_its_plugin_off() -> None:
    pool = made("eks", plugin_owner="dra", image="bottlerocket")
    template: Any = pool.create.params["launchTemplate"]
    data = b64decode(template["LaunchTemplateData"]["UserData"]).decode()
    assert data == "[settings.kubelet-device-plugins.nvidia]\nenabled = false\n"
    assert pool.fields[PLUGIN] == "none"
    assert PLUGIN not in made("eks", image="bottlerocket").fields
    row = load_provider("eks").update_row(Change(PLUGIN, "none", None))
    assert (row.kind, row.call) == ("replace", "")


@pytest.mark.parametrize(("release", "said"), [("1.62.0-ab12cd34", True), ("1.63.0-ab12cd34", False)])
def test_pool_when_bottlerocket_has_no_switch_for_its_plugin_then_refused(release: str, *, said: bool) -> None:
    target = eks_target(plugin_owner="dra", image="bottlerocket", native={"releaseVersion": release})
    found = [one for one in load_provider("eks").check(target) if one.code == "eks-bottlerocket-release"]
    assert [one.severity for one in found] == ["error"] * said


REFUSED: dict[str, tuple[Target, str]] = {
    "mig on bottlerocket": (
        eks_target(image="bottlerocket", plugin_owner="dra", sharing=Sharing(mig=MigCut("1g.5gb", "single"))),
        "write image: al2023",
    ),
    "a rack on eks": (eks_target("p6e-gb200.36xlarge", plugin_owner="dra"), "choose another instance type"),
    "a driver of the user on aks": (make_target(plugin_owner="dra", driver_owner="none"), "write driver.owner: auto"),
    "mig on gke": (gke_target(plugin_owner="dra", sharing=Sharing(MigCut("1g.5gb", "single"))), "remove sharing.mig"),
    "the operator's driver on gke": (
        gke_target(plugin_owner="dra", driver_owner="operator", image="UBUNTU_CONTAINERD"), "write driver.owner: auto",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_pool_when_the_driver_cannot_serve_the_nodes_then_refused_with_the_line_to_write(case: str) -> None:
    target, line = REFUSED[case]
    refused = solve_ownership(target, load_provider(target.cluster.provider).stack(target))
    assert not isinstance(refused, Ownership)
    assert refused.fix == f"write devicePlugin.owner: auto; or {line}"


@pytest.mark.parametrize(("old", "new"), list(permutations(("dra", "chart", "operator", None), 2)))
@pytest.mark.parametrize("cloud", CLOUDS)
def test_owner_when_changed_from_or_to_dra_then_the_nodes_are_new(cloud: str, old: object, new: object) -> None:
    row = load_provider(cloud).update_row(Change(label(ADVERTISER_LABEL), old, new))
    assert (row.kind == "replace") == ("dra" in (old, new))
    assert bool(row.call) == (row.kind != "replace")
    assert row.sentence
    assert row.source


@pytest.mark.parametrize(
    ("changes", "version", "said"),
    [
        ({}, "1.34.2", True),
        ({}, "1.33.9", False),
        ({}, "", False),
        ({"plugin_owner": "helm"}, "1.34.2", False),
        ({"plugin_owner": "dra"}, "1.34.2", False),
        ({"sharing": Sharing(slicing=Slicing("time-slicing", 4))}, "1.34.2", False),
    ],
)
def test_advice_when_the_cloud_gives_it_then_once_for_pools_that_chose_nothing(
    changes: dict[str, object], version: str, *, said: bool
) -> None:
    pools = [desire(pool="one", **changes), desire(pool="two", **changes)]  # type: ignore[arg-type]  # table data
    found = advise_claims(CLUSTER, version, pools, "docs: cloud")
    assert [(one.code, one.severity) for one in found] == ([("dra-advised", "hint")] if said else [])
    assert all("one, two" in one.seen for one in found)
    assert advise_claims(CLUSTER, version, pools, "") == []


def test_advice_when_asked_for_then_only_aws_gives_it() -> None:
    assert {cloud for cloud in CLOUDS if load_provider(cloud).extras.claims_advice} == {"eks"}


SPEC = (
    "apiVersion: gpukube.io/v1alpha1\nkind: GPUNodePools\nmetadata: {name: a}\n"
    'clusters: {c: {provider: eks, account: "111122223333", region: us-east-1, name: c}}\n'
    "pools: [{name: p, clusters: [c], instanceType: p4d.24xlarge, nodes: {count: 1}, "
    "devicePlugin: {owner: OWNER}, sharing: {mig: {layout: [3g.20gb, 2g.10gb, 2g.10gb]}}}]\n"
)


def test_layout_when_dra_publishes_its_profiles_then_no_strategy_is_asked_for(tmp_path: Path) -> None:
    claimed, plugin = tmp_path / "dra.yaml", tmp_path / "auto.yaml"
    claimed.write_text(SPEC.replace("OWNER", "dra"))
    plugin.write_text(SPEC.replace("OWNER", "auto"))
    (pool,) = prepare(load([str(claimed)]), Filters()).desired["c"]
    assert pool.promise.per_node == {"mig.nvidia.com/3g.20gb": 8, "mig.nvidia.com/2g.10gb": 16}
    with pytest.raises(SpecError) as caught:
        prepare(load([str(plugin)]), Filters())
    assert [one.code for one in caught.value.diagnostics if one.severity == "error"] == ["mig-choice"]
