"""What is wrong outside the spec: credentials, endpoints, libraries, foreign plugins. Told before a change is made."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from lightkube.codecs import load_all_yaml

from gpukube_sandbox import daemon
from tests.cli.harness import EXAMPLES, Cluster, Gpukube, edited_spec, pool_states, run_process, writes_since

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

SINGLE = EXAMPLES / "aks-mig-single.yaml"
COMMANDS = (("pool", "plan"), ("pool", "create"))

STATUSES = {
    "unknown token": (401, "InvalidAuthenticationToken", 5, "error[access]"),
    "expired token": (401, "ExpiredAuthenticationToken", 5, "error[access]"),
    "not allowed": (403, "AuthorizationFailed", 5, "error[permission]"),
    "forbidden by policy": (403, "RequestDisallowedByPolicy", 5, "error[policy]"),
    "wrong tenant": (401, "InvalidAuthenticationTokenTenant", 5, "error[tenant]"),
    "no such subscription": (404, "SubscriptionNotFound", 5, "error[subscription]"),
    "no such group": (404, "ResourceGroupNotFound", 1, "error[no-resource-group]"),
}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", STATUSES)
def test_command_when_the_cloud_refuses_us_then_its_exit_code_and_nothing_changed(
    name: str, words: tuple[str, ...], gpukube: Gpukube
) -> None:
    status, code, exit_code, said = STATUSES[name]
    daemon.add_fault(gpukube.info, "status", service="arm", status=status, code=code, times=0)
    refused = gpukube(*words, "-f", SINGLE)
    assert (refused.code, gpukube.writes()) == (exit_code, []), refused.out
    assert said in refused.out + refused.err
    assert "fix: " in refused.out + refused.err
    assert "Traceback" not in refused.out + refused.err


ELSEWHERE = {
    "subscription": ("99999999-2222-3333-4444-555555555555", 5, "error[subscription]"),
    "resourceGroup": ("mlops", 1, "error[no-resource-group]"),
    "name": ("trian", 1, "error[no-cluster]"),
}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("field", ELSEWHERE)
def test_command_when_the_cluster_is_elsewhere_then_which_part_of_its_address_is_wrong(
    field: str, words: tuple[str, ...], gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, exit_code, said = ELSEWHERE[field]
    monkeypatch.setenv("GPUKUBE_AKS_ENDPOINT", gpukube.info.arm_url)
    monkeypatch.setenv("GPUKUBE_SANDBOX_SECRET", gpukube.info.secret)
    place = f"clusters.train-aks.{field}={value}"
    refused = gpukube(*words, "-f", SINGLE, "--set", place, sandbox=False)  # --sandbox would make that cluster
    assert (refused.code, said in refused.out) == (exit_code, True), refused.out
    assert "fix: " in refused.out
    assert gpukube.writes() == []


def test_plan_when_nothing_listens_at_the_endpoint_then_one_and_where_it_was_sought(
    gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUKUBE_AKS_ENDPOINT", "http://127.0.0.1:9")
    refused = gpukube("pool", "plan", "-f", SINGLE, sandbox=False)
    assert refused.code == 1
    assert "error[unreachable]" in refused.out
    assert "host='127.0.0.1', port=9" in refused.out
    assert "Traceback" not in refused.out + refused.err


def test_plan_when_the_endpoint_is_plain_http_elsewhere_then_no_token_is_sent(
    gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUKUBE_AKS_ENDPOINT", "http://management.example.com")
    refused = gpukube("pool", "plan", "-f", SINGLE, sandbox=False)
    assert (refused.code, "error[plain-http]" in refused.out + refused.err) == (5, True), refused.out + refused.err


def test_plan_when_there_are_no_credentials_at_all_then_five_and_what_to_do(
    gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GPUKUBE_AKS_ENDPOINT", "https://127.0.0.1:9")
    monkeypatch.setenv("PATH", str(tmp_path))  # no az
    refused = gpukube("pool", "plan", "-f", SINGLE, sandbox=False)
    assert refused.code in (1, 5)
    assert "error[" in refused.out + refused.err
    assert "Traceback" not in refused.out + refused.err


def test_plan_when_the_endpoint_does_not_answer_then_one(gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon.add_fault(gpukube.info, "drop-before", service="arm", times=0)
    refused = gpukube("pool", "plan", "-f", SINGLE)
    assert refused.code == 1
    assert "error[unreachable]" in refused.out or "error[no-answer]" in refused.out
    assert "fix: " in refused.out


def test_libraries_when_hidden_then_really_hidden(sandbox: SandboxInfo, without: Callable[..., str]) -> None:
    code = "import importlib.util as u; print(u.find_spec('gpukube') is None); import azure"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": without("azure")},
        timeout=120,
    )
    assert done.stdout == "False\n"
    assert "ModuleNotFoundError: No module named 'azure'" in done.stderr


def test_plan_when_the_sdk_is_missing_then_one_and_the_extra_is_named(
    sandbox: SandboxInfo, without: Callable[..., str]
) -> None:
    refused = run_process(sandbox, "pool", "plan", "-f", SINGLE, PYTHONPATH=without("azure"))
    assert refused.code == 1
    assert "error[missing-extra]" in refused.out + refused.err
    assert "pip install 'gpukube[aks]'" in refused.out + refused.err
    assert "Traceback" not in refused.err


def test_validate_when_the_sdk_is_missing_then_it_is_not_missed(
    sandbox: SandboxInfo, without: Callable[..., str]
) -> None:
    fine = run_process(sandbox, "validate", "-f", SINGLE, PYTHONPATH=without("azure", "helm_python", "uvicorn"))
    assert (fine.code, fine.out) == (0, "ok: 1 pool on 1 cluster\n")


def test_create_when_there_is_no_helm_at_all_then_one_before_any_write(
    sandbox: SandboxInfo, without: Callable[..., str], tmp_path: Path
) -> None:
    refused = run_process(
        sandbox, "pool", "create", "-f", SINGLE, PYTHONPATH=without("helm_python"), PATH=str(tmp_path)
    )
    assert refused.code == 1
    assert "error[missing-helm]: neither the helm command nor the embedded Helm is installed" in refused.out
    assert "pip install 'gpukube[helm]'" in refused.out
    assert writes_since(sandbox) == []


def test_plan_when_there_is_no_helm_at_all_then_still_planned(
    sandbox: SandboxInfo, without: Callable[..., str], tmp_path: Path
) -> None:
    planned = run_process(sandbox, "pool", "plan", "-f", SINGLE, PYTHONPATH=without("helm_python"), PATH=str(tmp_path))
    assert (planned.code, "+ install  release" in planned.out) == (0, True), planned.err


STATIC_PLUGIN = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-device-plugin-daemonset, namespace: kube-system}
spec:
  selector: {matchLabels: {name: nvidia-device-plugin-ds}}
  template:
    metadata: {labels: {name: nvidia-device-plugin-ds}}
    spec:
      tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
      containers:
        - {name: nvidia-device-plugin-ctr, image: "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"}
"""


def test_create_when_a_static_plugin_could_land_on_the_nodes_then_named_and_nothing_changed(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    for item in load_all_yaml(STATIC_PLUGIN):
        cluster.client.create(item)
    for words, exit_code in ((("pool", "create"), 1), (("pool", "plan"), 0)):
        refused = gpukube(*words, "-f", SINGLE)
        assert refused.code == exit_code
        assert "error[foreign-advertiser]: DaemonSet kube-system/nvidia-device-plugin-daemonset could" in refused.out
        assert "kubectl delete daemonset nvidia-device-plugin-daemonset --namespace kube-system" in refused.out
        assert gpukube.writes() == []
    assert list(pool_states(gpukube.info)) == ["nodepool1"]


def test_create_when_a_plugin_cannot_land_on_the_nodes_then_it_is_no_hindrance(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    for item in load_all_yaml(STATIC_PLUGIN.replace("key: nvidia.com/gpu,", "key: other,")):
        cluster.client.create(item)
    done = gpukube("pool", "create", "-f", SINGLE)
    assert (done.code, cluster.devices("a100mig")) == (0, [{"gpu": 56}]), done.out


def test_create_when_the_foreign_plugin_is_declared_the_owner_then_no_release_of_ours(
    gpukube: Gpukube, cluster: Cluster, tmp_path: Path
) -> None:
    for item in load_all_yaml(STATIC_PLUGIN):
        cluster.client.create(item)

    def owner_none(spec: dict[str, list[dict[str, object]]]) -> None:
        spec["pools"][0] |= {"devicePlugin": {"owner": "none"}, "sharing": {}}

    spec = edited_spec("aks-mig-single", tmp_path, owner_none)
    planned = gpukube("pool", "plan", "-f", spec)
    assert planned.code == 0
    assert "error[" not in planned.out
    assert "install  release" not in planned.out


def test_pool_when_the_plugin_is_left_to_others_then_nothing_is_promised(
    gpukube: Gpukube, cluster: Cluster, tmp_path: Path
) -> None:
    def owner_none(spec: dict[str, list[dict[str, object]]]) -> None:
        spec["pools"][0] |= {"devicePlugin": {"owner": "none"}, "sharing": {}}

    spec = edited_spec("aks-timeslicing", tmp_path, owner_none)
    nothing = "not managed: no GPU is advertised until you install a plugin"
    planned = gpukube("pool", "plan", "-f", spec)
    assert (planned.code, f"devices {nothing}\n" in planned.out) == (0, True), planned.out
    (pool,) = gpukube("pool", "plan", "-f", spec, "-o", "json").pools()
    assert (pool["managed"], pool["devices"]) == (False, {"now": {}, "perNode": {}, "min": {}, "max": {}})
    made = gpukube("pool", "create", "-f", spec)
    assert (made.code, f"{nothing} (2 nodes)" in made.out, "promised" in made.out) == (0, True, False), made.out
    seen = gpukube("pool", "verify", "-f", spec)
    assert (seen.code, f"{nothing} (2 nodes)" in seen.out) == (0, True), seen.out
    assert gpukube("pool", "verify", "-f", spec, "-o", "json").pools()[0]["proof"]["status"] == "unmanaged"
    cluster.delete_nodes("t4shared")
    assert gpukube("pool", "verify", "-f", spec, "--timeout", "0").code == 1


@pytest.mark.parametrize("words", [("pool", "plan"), ("pool", "plan", "diff"), ("pool", "create")], ids=" ".join)
def test_command_when_the_spec_names_a_chart_version_that_does_not_exist_then_bad_input(
    words: tuple[str, ...], gpukube: Gpukube
) -> None:
    refused = gpukube(*words, "-f", SINGLE, "--set", "pools.a100mig.devicePlugin.version=0.19.2")
    assert (refused.code, gpukube.writes()) == (4, []), refused.out + refused.err
    assert "error[no-chart-version]" in refused.out + refused.err
    assert "the chart's repository has no such version" in refused.out + refused.err
    assert "helm show chart nvidia-device-plugin" in refused.out + refused.err


def test_list_when_the_spec_names_a_chart_version_that_does_not_exist_then_pools_are_listed(gpukube: Gpukube) -> None:
    listed = gpukube("pool", "list", "-f", SINGLE, "--set", "pools.a100mig.devicePlugin.version=0.19.2")
    assert listed.code == 0, listed.out + listed.err
