"""Create: idempotent, careful with what is there, and clear about what the cloud refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.embedded import HelmSdk
from gpukube.cluster.helm.failures import explain_helm, words_of
from gpukube.errors import Where
from gpukube_sandbox import daemon
from tests.builders import SUBSCRIPTION
from tests.cli.harness import EXAMPLES, Cluster, Document, Gpukube, edited_spec, pool_states

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.cluster.helm.engine import HelmAnswer, HelmJob

SINGLE = EXAMPLES / "aks-mig-single.yaml"
SLICED = EXAMPLES / "aks-timeslicing.yaml"
CUSTOM = EXAMPLES / "aks-custom-taint.yaml"


def arm_writes(gpukube: Gpukube) -> list[str]:
    """List what the last command changed in the cloud, by the end of the path."""
    return [f"{w.split()[1]} {w.rpartition('/')[2]}" for w in gpukube.writes() if w.startswith("arm ")]


def test_create_when_run_again_then_nothing_is_written_and_zero(gpukube: Gpukube) -> None:
    gpukube.made("-f", SINGLE, "-f", CUSTOM)
    assert sorted(arm_writes(gpukube)) == ["PUT a100mig", "PUT t4custom"]
    again = gpukube("pool", "create", "-f", SINGLE, "-f", CUSTOM)
    assert (again.code, gpukube.writes()) == (0, [])
    assert "unchanged     train-aks/a100mig  matches the spec" in again.out
    assert "revision 1 already serves these pools" in again.out


def test_create_when_a_pool_is_added_then_only_it_is_made_and_the_other_stays_proven(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    gpukube.made("-f", SINGLE)
    before = cluster.nodes("a100mig")[0].metadata
    more = gpukube("pool", "create", "-f", SINGLE, "-f", SLICED)
    assert (more.code, arm_writes(gpukube)) == (0, ["PUT t4shared"])
    after = cluster.nodes("a100mig")[0].metadata
    assert before is not None
    assert after is not None
    assert before.uid == after.uid
    assert cluster.devices("a100mig") == [{"gpu": 56}]


def test_create_when_an_own_pool_differs_then_left_alone_with_its_diff_and_one(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    other = gpukube("pool", "create", "-f", SLICED, "--set", "pools[0].labels.team=audio")
    assert other.code == 1
    assert (
        "differs       train-aks/t4shared  not changed; gpukube pool apply changes it: differs in labels[team]"
        in other.out
    )
    assert '~ labels[team]: "vision" -> "audio"  [in-place]' in other.out
    assert arm_writes(gpukube) == []


def test_create_when_one_differs_and_others_succeed_then_three(gpukube: Gpukube) -> None:
    gpukube.made("-f", SLICED)
    mixed = gpukube(
        "pool", "create", "-f", CUSTOM, "-f", SLICED, "--set", "pools.t4shared.labels.team=audio", "-o", "json"
    )
    assert mixed.code == 3
    document = mixed.json()
    assert document["exitCode"] == 3
    outcomes = {pool["pool"]: pool["outcome"] for pool in mixed.pools()}
    assert outcomes == {"t4shared": "differs", "t4custom": "done"}
    assert arm_writes(gpukube) == ["PUT t4custom"]


def _add_foreign_pool(gpukube: Gpukube, **labels: str) -> None:
    """Make the pool of the example, then let it be somebody else's."""
    gpukube.made("-f", SLICED)
    daemon.tamper(gpukube.info, "train", "t4shared", nodeLabels=labels or None, tags=None)


FOREIGN = {
    "unmarked": ({}, "has no gpukube.io/owner label"),
    "of another owner": (
        {"gpukube.io/owner": "vision", "gpukube.io/pool": "t4shared"},
        'belongs to "vision" (pool t4shared)',
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_create_when_a_foreign_pool_has_the_name_then_a_conflict_and_untouched(name: str, gpukube: Gpukube) -> None:
    labels, said = FOREIGN[name]
    _add_foreign_pool(gpukube, **labels)
    refused = gpukube("pool", "create", "-f", SLICED)
    assert refused.code == 1
    assert 'error[foreign-pool]: a pool named "t4shared" exists on train-aks and ' + said in refused.out
    assert arm_writes(gpukube) == []


@pytest.mark.turns(2)
@pytest.mark.parametrize("code", ["AllocationFailed", "ZonalAllocationFailed", "SkuNotAvailable", "QuotaExceeded"])
def test_create_when_the_cloud_has_no_machine_then_six_with_the_remedy(code: str, gpukube: Gpukube) -> None:
    daemon.add_fault(gpukube.info, "operation", code=code)
    refused = gpukube("pool", "create", "-f", SLICED)
    assert refused.code == 6, refused.out
    expected = "error[quota]" if code == "QuotaExceeded" else "error[capacity]"
    assert expected in refused.out or "error[size-not-offered]" in refused.out
    assert "fix: " in refused.out
    assert f"to resume: gpukube --sandbox pool create -f {SLICED}" in refused.out


QUOTA = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: quota}
clusters:
  train-aks: {provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: train}
defaults: {clusters: [train-aks], instanceType: Standard_NC4as_T4_v3, devicePlugin: {owner: none}}
pools:
  - {name: t4big, nodes: {count: 3}}
  - {name: t4small, nodes: {count: 1}}
  - {name: t4auto, nodes: {autoscaling: {min: 0, max: 50}}}
"""
FAMILY = "Standard NCASv3_T4 Family"


def quota_spec(gpukube: Gpukube, tmp_path: Path, **quotas: int) -> Path:
    """Write a spec of 3 nodes, of 1 and of 0 to 50, 4 vCPUs each, in a subscription with these quotas."""
    spec = tmp_path / "quota.yaml"
    spec.write_text(QUOTA)
    daemon.declare(gpukube.info, "aks", subscription=SUBSCRIPTION, location="eastus", quotas=quotas)
    return spec


@pytest.mark.parametrize("verb", ["create", "apply"])
def test_pools_when_a_quota_has_no_room_to_start_one_then_it_is_not_sent_and_others_are(
    gpukube: Gpukube, tmp_path: Path, verb: str
) -> None:
    spec = quota_spec(gpukube, tmp_path, **{FAMILY: 8})
    ended = gpukube("pool", verb, "-f", spec, "-o", "json", *(["--yes"] if verb == "apply" else []))
    assert ended.code == 3, ended.err
    pools = {pool["pool"]: pool for pool in ended.pools()}
    assert {name: pool["outcome"] for name, pool in pools.items()} == {
        "t4big": "failed",
        "t4small": "done",
        "t4auto": "done",
    }
    (problem,) = pools["t4big"]["error"]
    assert (problem["code"], problem["severity"]) == ("quota-short", "error")
    assert "allows 8 vCPUs, 0 of them used; the first nodes need 12" in problem["message"]
    assert "--ignore-quota" in problem["fix"]
    assert sorted(arm_writes(gpukube)) == ["PUT t4auto", "PUT t4small"]


def test_create_when_no_pool_has_room_then_six_and_the_cloud_is_asked_only_with_the_option(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    spec = quota_spec(gpukube, tmp_path, **{FAMILY: 8})
    line = ("pool", "create", "-f", spec, "--pool", "t4big")
    held = gpukube(*line)
    assert (held.code, arm_writes(gpukube)) == (6, [])
    assert "error[quota-short]" in held.out
    tried = gpukube(*line, "--ignore-quota")
    assert (tried.code, "error[quota]" in tried.out, arm_writes(gpukube)) == (6, True, ["PUT t4big"])


def test_create_when_quotas_may_not_be_read_then_one_line_and_the_pools_are_made(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    spec = quota_spec(gpukube, tmp_path, **{FAMILY: 100})
    daemon.add_fault(gpukube.info, "status", status=403, path="/usages", code="AuthorizationFailed", times=9)
    made = gpukube("pool", "create", "-f", spec, "--pool", "t4small")
    assert (made.code, arm_writes(gpukube)) == (0, ["PUT t4small"]), made.err
    (told,) = (line for line in made.err.splitlines() if "quotas not checked" in line)
    assert "cores (" in told or "cores, " in told or ", cores" in told, told


def test_create_when_nothing_is_to_start_then_no_quota_is_read(gpukube: Gpukube, tmp_path: Path) -> None:
    spec = quota_spec(gpukube, tmp_path, **{FAMILY: 0})
    made = gpukube("pool", "create", "-f", spec, "--pool", "t4auto")
    asked = [one["path"] for one in daemon.requests_since(gpukube.info, gpukube.mark) if "/usages" in str(one["path"])]
    assert (made.code, asked) == (0, []), made.err


def test_create_when_a_pool_failed_then_the_next_run_repairs_it(gpukube: Gpukube, cluster: Cluster) -> None:
    daemon.add_fault(gpukube.info, "operation", code="AllocationFailed")
    assert gpukube("pool", "create", "-f", SLICED).code == 6
    assert pool_states(gpukube.info)["t4shared"] == "Failed"
    shown = gpukube("pool", "plan", "-f", SLICED)
    assert "+ create   t4shared" in shown.out
    assert "Failed" in shown.out
    repaired = gpukube("pool", "create", "-f", SLICED)
    assert (repaired.code, arm_writes(gpukube)) == (0, ["PUT t4shared"]), repaired.out
    assert pool_states(gpukube.info) == {"nodepool1": "Succeeded", "t4shared": "Succeeded"}
    assert cluster.devices("t4shared") == [{"gpu": 4}, {"gpu": 4}]


def test_create_when_one_pool_has_no_capacity_then_the_others_are_made_and_three(gpukube: Gpukube) -> None:
    daemon.add_fault(gpukube.info, "operation", code="AllocationFailed", pool="t4shared", times=0)
    partly = gpukube("pool", "create", "-f", SLICED, "-f", CUSTOM, "-f", SINGLE, "-o", "json")
    assert partly.code == 3
    outcomes = {pool["pool"]: pool["outcome"] for pool in partly.pools()}
    assert outcomes == {"t4shared": "failed", "t4custom": "done", "a100mig": "done"}
    (error,) = next(pool["error"] for pool in partly.pools() if pool["pool"] == "t4shared")
    assert (error["code"], bool(error["fix"])) == ("capacity", True)


HICCUPS: dict[str, dict[str, object]] = {
    "throttled": {"action": "status", "status": 429, "headers": {"Retry-After": "0"}, "times": 2},
    "server error": {"action": "status", "status": 503, "headers": {"Retry-After": "0"}},
    "connection lost": {"action": "drop-before"},
    "answer lost": {"action": "drop-after"},
}


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", HICCUPS)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_create_when_the_cloud_hiccups_then_it_still_ends_well_with_one_pool(
    name: str, method: str, gpukube: Gpukube, cluster: Cluster
) -> None:
    daemon.add_fault(gpukube.info, service="arm", method=method, path="agentPools", **HICCUPS[name])  # type: ignore[arg-type]  # test data
    done = gpukube("pool", "create", "-f", CUSTOM)
    assert done.code == 0, done.out + done.err
    assert pool_states(gpukube.info) == {"nodepool1": "Succeeded", "t4custom": "Succeeded"}
    assert cluster.devices("t4custom") == [{"gpu": 1}]


def test_create_when_its_operation_is_throttled_beyond_the_sdks_retries_then_still_waited_for(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    daemon.add_fault(
        gpukube.info, "status", service="arm", method="GET", path="operations", status=429,
        headers={"Retry-After": "0"}, times=12,
    )  # fmt: skip
    done = gpukube("pool", "create", "-f", CUSTOM)
    assert done.code == 0, done.out + done.err
    assert "waiting: Azure throttles these requests" in done.out + done.err
    assert cluster.devices("t4custom") == [{"gpu": 1}]


def test_create_when_the_cluster_is_busy_with_a_reconcile_then_waits_for_it(gpukube: Gpukube) -> None:
    daemon.add_fault(gpukube.info, "background", cluster="train", seconds=1000, state="Updating")
    done = gpukube("pool", "create", "-f", CUSTOM)
    assert done.code == 0, done.out + done.err
    assert "t4custom: 1" not in done.out
    assert "nvidia.com/gpu: 1 verified" in done.out


def test_create_when_permission_is_missing_in_the_cluster_then_five_before_any_write(gpukube: Gpukube) -> None:
    daemon.deny(
        gpukube.info, "train", ("create", "clusterroles.rbac.authorization.k8s.io"), ("create", "daemonsets.apps")
    )
    refused = gpukube("pool", "create", "-f", SINGLE)
    assert refused.code == 5
    assert "error[kube-permissions]: not allowed in the cluster: create daemonsets, create clusterroles" in refused.out
    assert gpukube.writes() == []


def test_create_when_permission_is_missing_in_the_cloud_then_five(gpukube: Gpukube) -> None:
    daemon.add_fault(gpukube.info, "operation", code="AuthorizationFailed")
    refused = gpukube("pool", "create", "-f", SINGLE)
    assert (refused.code, "error[permission]" in refused.out) == (5, True), refused.out
    assert list(pool_states(gpukube.info)) == ["nodepool1"]


def test_create_when_the_chart_cannot_be_had_then_one_before_any_write(gpukube: Gpukube) -> None:
    refused = gpukube("pool", "create", "-f", SINGLE, "--chart", "http://127.0.0.1:9/charts")
    assert refused.code == 1
    assert "error[" in refused.out
    assert "not-attempted train-aks/a100mig" in refused.out
    assert gpukube.writes() == []


def test_create_when_a_cluster_fails_then_the_other_is_done_and_three(gpukube: Gpukube, tmp_path: Path) -> None:
    def two_clusters(spec: Document) -> None:
        spec["clusters"]["other-aks"] = {**spec["clusters"]["train-aks"], "name": "other"}
        spec["pools"][0] |= {"clusters": ["other-aks", "train-aks"], "taints": []}

    spec = edited_spec("aks-custom-taint", tmp_path, two_clusters)
    daemon.add_cluster(gpukube.info, SUBSCRIPTION, "ml", "other", options={"foreignPlugin": True})
    partly = gpukube("pool", "create", "-f", spec, "-o", "json")
    assert partly.code == 3, partly.out
    outcomes = {cluster["cluster"]: cluster["pools"][0]["outcome"] for cluster in partly.json()["clusters"]}
    assert outcomes == {"other-aks": "not-attempted", "train-aks": "done"}
    assert list(pool_states(gpukube.info, "other")) == ["nodepool1"]
    assert not [line for line in gpukube.writes() if "/ml/other/" in line]


def test_create_when_helm_is_answered_late_then_asked_again_with_all_it_needs(
    gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("helm_python", reason="the embedded Helm is not installed (gpukube[helm])")
    upgrade, late = HelmSdk.upgrade, ["kubernetes cluster unreachable: net/http: TLS handshake timeout"]

    def first_late(engine: HelmSdk, job: HelmJob) -> HelmAnswer:
        if not late:
            return upgrade(engine, job)
        job.kubeconfig.unlink()  # as Helm's process does in the end
        raise explain_helm(late.pop(), Where("helm upgrade"), words_of(job.name))

    monkeypatch.setattr(HelmSdk, "upgrade", first_late)
    gpukube.made("-f", CUSTOM)


DENIED_TAGS = "User: arn:aws:iam::111122223333:user/ci is not authorized to perform: eks:TagResource on resource: *"


def test_create_when_the_identity_may_not_tag_then_the_pool_is_made_without_the_copy_and_said_so(
    gpukube: Gpukube,
) -> None:
    daemon.add_fault(
        gpukube.info, "status", service="aws", method="POST", path="/node-groups", status=403,
        code="AccessDeniedException", message=DENIED_TAGS,
    )  # fmt: skip
    daemon.add_fault(
        gpukube.info, "status", service="aws", path="/tags/", status=403, times=0,
        code="AccessDeniedException", message=DENIED_TAGS,
    )  # fmt: skip
    spec = EXAMPLES / "eks-timeslicing.yaml"
    made = gpukube("pool", "create", "-f", spec)
    assert made.code == 0, made.out + made.err
    assert "EKS rejected the tag copy of gpukube" in made.out + made.err
    assert gpukube("pool", "plan", "diff", "-f", spec).code == 0
    relabelled = gpukube("pool", "apply", "-f", spec, "--yes", "--set", "pools.t4shared.labels.team=audio")
    assert relabelled.code == 0, relabelled.out + relabelled.err
    assert "EKS rejected the tag copy of gpukube" in relabelled.out + relabelled.err
