"""Real clients over a real socket: Helm's SDK in a child process, kubectl, lightkube."""

from __future__ import annotations

import json
import os
import ssl
import sys
from typing import TYPE_CHECKING

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from gpukube_sandbox.clock import ScaledClock
from gpukube_sandbox.kube.cluster import GpuShape, KubeCluster, NodeShape, Taint
from gpukube_sandbox.kube.http.app import make_app
from gpukube_sandbox.kube.repository import CHART, VERSIONS, archive_name, chart_archive, repository_routes
from gpukube_sandbox.kube.store.rbac import SANDBOX_ADMIN
from sandbox_tests.clients import client
from sandbox_tests.waiting import wait_for

from .clients import run_client
from .conftest import TOKEN, Served, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("helm_python")

NAMESPACE = "gpu"
HELM_S = 60
"""What helm is given for what must come."""
SLICED = GpuShape("A100-40GB", 8, ("1g.5gb",) * 7, mig_reboot=True)
GPU_TAINT = Taint("nvidia.com/gpu", "present")
CONFIGS = {
    "default": "version: v1\n",
    "single": "version: v1\nflags: {migStrategy: single}\n",
    "mixed": "version: v1\nflags: {migStrategy: mixed}\n",
}
VALUES: dict[str, object] = {"gfd": {"enabled": True}, "config": {"map": CONFIGS, "default": "default"}}

HELM = """
import json, sys
import helm_python
verb, kubeconfig, arguments = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
config = helm_python.Config(namespace=arguments.pop("home"), kubeconfig_content=open(kubeconfig).read())
try:
    answer = getattr(config, verb)(*arguments.pop("args", []), **arguments)
    json.dump({"ok": json.loads(json.dumps(answer, default=str))}, sys.stdout)
except helm_python.HelmError as error:
    json.dump({"error": type(error).__name__, "text": str(error)}, sys.stdout)
"""


def helm(kubeconfig: Path, verb: str, *args: object, **more: object) -> dict[str, object]:
    arguments = json.dumps({"home": NAMESPACE, "args": args, **more})
    done = run_client([sys.executable, "-c", HELM, verb, str(kubeconfig), arguments])
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def install(kubeconfig: Path, chart: Path, values: dict[str, object], **more: object) -> dict[str, object]:
    return helm(
        kubeconfig,
        "install",
        str(chart),
        "nvdp",
        namespace=NAMESPACE,
        create_namespace=True,
        values=values,
        timeout=HELM_S,
        **more,
    )


def kubectl(kubeconfig: Path, *args: str, stdin: str = "") -> str:
    client("kubectl")
    env = {**os.environ, "HOME": str(kubeconfig.parent), "KUBECONFIG": str(kubeconfig)}
    done = run_client(["kubectl", *args], env, stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def advertises(served: Served, node: str, wanted: dict[str, str]) -> None:
    """Wait until a node offers these resources of NVIDIA."""
    wait_for(lambda: allocatable(served, node) == wanted, lambda: allocatable(served, node))


def shown(kubeconfig: Path, wanted: str, *args: str) -> None:
    """Wait until kubectl's answer has a text in it."""
    wait_for(lambda: wanted in kubectl(kubeconfig, *args), lambda: kubectl(kubeconfig, *args))


def product(kubeconfig: Path, node: str) -> str | None:
    labels = json.loads(kubectl(kubeconfig, "get", "node", node, "-o", "json"))["metadata"]["labels"]
    found: str | None = labels.get("nvidia.com/gpu.product")
    return found


def allocatable(served: Served, node: str) -> dict[str, str]:
    async def read() -> dict[str, str]:
        found = await served.cluster.api.get("nodes", node)
        return {
            key: value
            for key, value in (found or {"status": {"allocatable": {}}})["status"]["allocatable"].items()
            if "nvidia" in key
        }

    return served.run(read())


@pytest.fixture
def fleet(served: Served) -> Served:
    """A system node, and GPU nodes with one config each."""
    served.run(served.cluster.add_node(NodeShape("system", boot_s=1)))
    for key in ("single", "mixed"):
        marks = {"nvidia.com/device-plugin.config": key}
        served.run(served.cluster.add_node(NodeShape(key, labels=marks, taints=(GPU_TAINT,), gpu=SLICED, boot_s=5)))
    return served


@pytest.mark.clients("kubectl")
def test_helm_when_chart_is_installed_then_nodes_advertise_and_after_uninstall_nothing_is_left(
    fleet: Served, kubeconfig: Path, chart: Path
) -> None:
    installed = install(kubeconfig, chart, VALUES, wait="watcher")
    assert "ok" in installed, installed
    advertises(fleet, "single", {"nvidia.com/gpu": "56"})
    advertises(fleet, "mixed", {"nvidia.com/mig-1g.5gb": "56"})
    upgraded = helm(kubeconfig, "upgrade", str(chart), "nvdp", namespace=NAMESPACE, values=VALUES, timeout=HELM_S)
    history = helm(kubeconfig, "history", "nvdp")
    listed = helm(kubeconfig, "list")
    found = wait_for(lambda: product(kubeconfig, "single"))
    gone = helm(kubeconfig, "uninstall", "nvdp", timeout=HELM_S, wait="watcher")

    assert "ok" in upgraded, upgraded
    assert "ok" in gone, gone
    assert isinstance(history["ok"], list)
    assert [item["status"] for item in history["ok"]] == ["superseded", "deployed"]
    assert "nvdp" in json.dumps(listed)
    assert found == "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"
    wait_for(lambda: product(kubeconfig, "single") is None)
    advertises(fleet, "single", {"nvidia.com/gpu": "0"})


@pytest.mark.turns(4)
@pytest.mark.parametrize(
    ("values", "namespace", "text"),
    [
        pytest.param({}, "default", "'default' namespace is not recommended", id="default-namespace"),
        pytest.param({"namespace": "x"}, NAMESPACE, "no longer supported", id="value-namespace"),
        pytest.param({"config": {"name": "a", "map": {"b": "c: d"}}}, NAMESPACE, "Only one of", id="name-and-map"),
        pytest.param(
            {"config": {"map": {"a": "x: y", "b": "x: y"}}}, NAMESPACE, "default config must be", id="two-keys"
        ),
        pytest.param({"config": {"map": {"a": {"version": "v1"}}}}, NAMESPACE, "", id="map-value-no-string"),
        pytest.param({"deviceListStrategy": ["envvar"]}, NAMESPACE, "", id="strategy-as-list"),
        pytest.param({"tolerations": [{"keyy": "x"}]}, NAMESPACE, "field not declared in schema", id="unknown-field"),
        pytest.param(
            {"config": {"map": {"1": "a: b"}, "default": 1}}, NAMESPACE, "expected string", id="numeric-default"
        ),
    ],
)
def test_helm_when_values_are_wrong_then_release_error_names_it(
    kubeconfig: Path, chart: Path, values: dict[str, object], namespace: str, text: str
) -> None:
    more = {"namespace": namespace, "create_namespace": True, "values": values, "timeout": HELM_S}
    found = helm(kubeconfig, "install", str(chart), "nvdp", **more)

    assert found.get("error") == "HelmReleaseError", found
    assert text in str(found["text"])


@pytest.mark.clients("kubectl")
def test_helm_when_kubectl_has_set_the_image_then_upgrade_conflicts(
    served: Served, kubeconfig: Path, chart: Path
) -> None:
    install(kubeconfig, chart, {})
    kubectl(
        kubeconfig, "set", "image", "-n", NAMESPACE, "ds/nvdp-nvidia-device-plugin", "nvidia-device-plugin-ctr=other:1"
    )

    found = helm(kubeconfig, "upgrade", str(chart), "nvdp", namespace=NAMESPACE, values={}, timeout=HELM_S)

    assert found["error"] == "HelmReleaseError"
    assert 'conflict with "kubectl-set"' in str(found["text"])


@pytest.mark.clients("kubectl")
def test_helm_when_daemonset_was_deleted_by_hand_then_upgrade_makes_it_again(
    served: Served, kubeconfig: Path, chart: Path
) -> None:
    install(kubeconfig, chart, {})
    kubectl(kubeconfig, "delete", "-n", NAMESPACE, "ds/nvdp-nvidia-device-plugin")
    helm(kubeconfig, "upgrade", str(chart), "nvdp", namespace=NAMESPACE, values={}, timeout=HELM_S)

    assert "nvdp-nvidia-device-plugin" in kubectl(kubeconfig, "get", "-n", NAMESPACE, "ds", "-o", "name")


@pytest.fixture
def with_repository(tmp_path: Path) -> Iterator[Served]:
    cluster = KubeCluster("train", ScaledClock(200.0), TOKEN)
    app = Starlette(routes=[repository_routes(), Mount("/k8s/train", make_app(cluster))])
    with serve(cluster, app, tmp_path) as running:
        yield running


def test_repository_when_asked_then_index_and_archives_are_the_same_bytes(with_repository: Served) -> None:
    trusted = ssl.create_default_context(cadata=with_repository.ca_pem)
    with httpx.Client(base_url=with_repository.url, verify=trusted, trust_env=False, timeout=60) as client:
        index = client.get("/charts/index.yaml").text
        archive = client.get(f"/charts/{archive_name('0.19.3')}").content
        missing = client.get("/charts/other.tgz").status_code

    assert all(version in index for version in VERSIONS)
    assert archive == chart_archive("0.19.3")
    assert missing == 404


@pytest.mark.clients("kubectl")
def test_app_when_mounted_below_a_path_then_helm_and_kubectl_work(
    with_repository: Served, tmp_path: Path, chart: Path
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(with_repository.cluster.kubeconfig(f"{with_repository.url}/k8s/train", with_repository.ca_pem))

    assert "ok" in install(path, chart, {})
    assert "nvdp-nvidia-device-plugin" in kubectl(path, "get", "ds", "-A", "-o", "wide")


@pytest.fixture
def charts_url(tmp_path: Path) -> Iterator[str]:
    app = Starlette(routes=[repository_routes()])
    with serve(KubeCluster("none", ScaledClock(), TOKEN), app, tmp_path, secure=False) as running:
        yield f"{running.url}/charts"


@pytest.mark.clients("kubectl")
@pytest.mark.turns(2)
@pytest.mark.parametrize("older", VERSIONS[1:])
def test_repository_when_helm_upgrades_from_an_older_version_then_newer_runs(
    charts_url: str, kubeconfig: Path, older: str
) -> None:
    versions = {"old": older, "new": VERSIONS[0]}
    values = {"gfd": {"enabled": True}}
    common = {"chart_repo_url": charts_url, "namespace": NAMESPACE, "timeout": HELM_S, "values": values}
    old = helm(kubeconfig, "install", CHART, "nvdp", create_namespace=True, chart_version=versions["old"], **common)
    new = helm(kubeconfig, "upgrade", CHART, "nvdp", chart_version=versions["new"], **common)
    items = json.loads(kubectl(kubeconfig, "get", "ds", "-n", NAMESPACE, "-o", "json"))["items"]
    made = {item["metadata"]["name"]: item for item in items}

    assert "ok" in old, old
    assert "ok" in new, new
    assert made["nvdp-nvidia-device-plugin"]["metadata"]["labels"]["helm.sh/chart"] == f"{CHART}-{versions['new']}"
    (worker,) = made["nvdp-node-feature-discovery-worker"]["spec"]["template"]["spec"]["containers"]
    assert worker["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert "grpc" not in worker["livenessProbe"]
    mps = made["nvdp-nvidia-device-plugin-mps-control-daemon"]["spec"]["template"]["spec"]
    assert (mps.get("hostPID"), mps.get("shareProcessNamespace")) == (True, None)
    assert "nvdp-node-feature-discovery-gc" in kubectl(kubeconfig, "get", "deployments", "-n", NAMESPACE)


# kubectl


@pytest.mark.clients("kubectl")
def test_kubectl_when_getting_then_tables_are_shown(fleet: Served, kubeconfig: Path) -> None:
    shown(kubeconfig, "single", "get", "nodes")
    lines = kubectl(kubeconfig, "get", "nodes").splitlines()

    assert lines[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert lines[1].endswith("v1.34.2")
    assert "Active" in kubectl(kubeconfig, "get", "ns")


@pytest.mark.clients("kubectl")
def test_kubectl_when_labelling_tainting_and_cordoning_then_node_changes(fleet: Served, kubeconfig: Path) -> None:
    shown(kubeconfig, "system", "get", "nodes", "-o", "name")
    kubectl(kubeconfig, "label", "node", "system", "team=vision")
    kubectl(kubeconfig, "taint", "node", "system", "dedicated=x:NoSchedule")
    kubectl(kubeconfig, "cordon", "system")
    node = json.loads(kubectl(kubeconfig, "get", "node", "system", "-o", "json"))

    assert node["metadata"]["labels"]["team"] == "vision"
    assert {"key": "dedicated", "value": "x", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["spec"]["unschedulable"] is True
    assert "dedicated=x:NoSchedule" in kubectl(kubeconfig, "describe", "node", "system")
    kubectl(kubeconfig, "taint", "node", "system", "dedicated=x:NoSchedule-")
    after = json.loads(kubectl(kubeconfig, "get", "node", "system", "-o", "json"))
    assert "dedicated" not in [taint["key"] for taint in after["spec"].get("taints", [])]


@pytest.mark.clients("kubectl")
def test_kubectl_when_applying_twice_then_changes_are_merged(served: Served, kubeconfig: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {a: b}\n"
    kubectl(kubeconfig, "apply", "-f", "-", stdin=text)
    kubectl(kubeconfig, "apply", "-f", "-", stdin=text.replace("{a: b}", "{c: d}"))
    found = json.loads(kubectl(kubeconfig, "get", "cm", "cm", "-o", "json"))
    kubectl(kubeconfig, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    assert found["data"] == {"c": "d"}
    assert "cm" in kubectl(kubeconfig, "get", "cm", "-o", "name")


@pytest.mark.clients("kubectl")
def test_kubectl_when_pod_runs_then_logs_wait_exec_free_delete(fleet: Served, kubeconfig: Path) -> None:
    shown(kubeconfig, "Ready", "get", "node", "single", "--ignore-not-found")
    text = """
apiVersion: v1
kind: Pod
metadata: {name: probe}
spec:
  nodeName: single
  restartPolicy: Never
  containers: [{name: main, image: cuda, command: [nvidia-smi, -L]}]
"""
    kubectl(kubeconfig, "apply", "-f", "-", stdin=text)
    kubectl(kubeconfig, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/probe", "--timeout=60s")

    assert kubectl(kubeconfig, "logs", "probe").count("MIG 1g.5gb") == 56
    kubectl(kubeconfig, "delete", "pod", "probe")
    assert not kubectl(kubeconfig, "get", "pods", "-o", "name")


@pytest.mark.clients("kubectl")
def test_kubectl_when_asking_what_is_allowed_then_deny_list_decides(
    served: Served, kubeconfig: Path, chart: Path
) -> None:
    assert kubectl(kubeconfig, "auth", "can-i", "create", "daemonsets.apps").strip() == "yes"
    served.cluster.denied.add(("patch", "clusterroles.rbac.authorization.k8s.io"))
    found = install(kubeconfig, chart, {})

    assert found["error"] == "HelmReleaseError"
    assert "is forbidden" in str(found["text"])


@pytest.mark.clients("kubectl")
def test_kubectl_when_scaling_and_draining_then_pods_move(fleet: Served, kubeconfig: Path) -> None:
    shown(kubeconfig, " Ready", "get", "node", "system", "--ignore-not-found")
    kubectl(kubeconfig, "create", "deployment", "web", "--image=web:1")
    kubectl(kubeconfig, "scale", "deployment", "web", "--replicas=2")
    kubectl(kubeconfig, "rollout", "status", "deployment", "web", "--timeout=60s")
    fleet.run(fleet.cluster.add_node(NodeShape("other", boot_s=1)))
    shown(kubeconfig, " Ready", "get", "node", "other", "--ignore-not-found")
    kubectl(kubeconfig, "drain", "system", "--ignore-daemonsets", "--timeout=60s")
    kubectl(kubeconfig, "rollout", "status", "deployment", "web", "--timeout=60s")

    def places() -> list[str | None]:
        pods = json.loads(kubectl(kubeconfig, "get", "pods", "-o", "json"))["items"]
        return [pod["spec"].get("nodeName") for pod in pods]

    # The rollout may be told of by a status from before the drain.
    wait_for(lambda: places() == ["other", "other"], places)


# plain requests


def request(served: Served, method: str, path: str, body: object = None, *, token: str = TOKEN) -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"}
    trusted = ssl.create_default_context(cadata=served.ca_pem)
    with httpx.Client(verify=trusted, trust_env=False, timeout=60) as client:
        return client.request(method, f"{served.url}{path}", headers=headers, json=body)


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/api/v1/namespaces/default/pods/none", None, (404, "NotFound")),
        ("GET", "/apis/nope/v1/things", None, (404, "NotFound")),
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}}, (409, "AlreadyExists")),
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "BAD"}}, (422, "Invalid")),
        ("POST", "/api/v1/namespaces", {"kind": "Pod"}, (400, "BadRequest")),
        ("GET", "/api/v1/pods?labelSelector=a%20in%20b", None, (400, "BadRequest")),
        ("GET", "/openapi/v4", None, (404, "NotFound")),
        ("POST", "/api/v1/namespaces", None, (400, "BadRequest")),
        ("POST", "/api/v1/namespaces", {"apiVersion": "v2", "metadata": {"name": "a"}}, (400, "BadRequest")),
        ("PUT", "/api/v1/namespaces/default/pods/a/binding", {}, (405, "MethodNotAllowed")),
        ("DELETE", "/api/v1/namespaces/default/pods/a?gracePeriodSeconds=soon", None, (400, "BadRequest")),
        ("GET", "/api/v1/pods?resourceVersion=1&resourceVersionMatch=About", None, (422, "Invalid")),
        ("GET", "/api/v1/pods?timeoutSeconds=soon", None, (400, "BadRequest")),
    ],
)
def test_request_when_refused_then_status_object(
    served: Served, method: str, path: str, body: object, expected: tuple[int, str]
) -> None:
    answer = request(served, method, path, body)

    assert (answer.status_code, answer.json()["reason"]) == expected
    assert answer.json()["kind"] == "Status"


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ({"metadata": {"name": "other"}}, 400),
        ({"metadata": {"namespace": "other"}}, 400),
        ({"metadata": {"uid": "other"}}, 422),
        ({"metadata": {"labels": {"a": 5}}}, 422),
        ({"data": {"a": "b"}}, 200),
    ],
)
def test_patch_when_it_makes_another_object_or_none_then_refused(
    served: Served, patch: dict[str, object], code: int
) -> None:
    trusted, headers = ssl.create_default_context(cadata=served.ca_pem), {"authorization": f"Bearer {TOKEN}"}
    request(served, "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    headers["content-type"] = "application/merge-patch+json"
    with httpx.Client(verify=trusted, trust_env=False, timeout=60, headers=headers) as client:
        place = f"{served.url}/api/v1/namespaces/default/configmaps/a"
        assert client.patch(place, json=patch).status_code == code
        assert client.get(place, headers={"accept": "application/foo"}).status_code == 406
        assert client.head(place).status_code == 405


def test_request_when_token_is_wrong_then_401(served: Served) -> None:
    assert request(served, "GET", "/version", token="other").status_code == 401


def test_request_when_denied_then_403_and_access_review_says_no(served: Served) -> None:
    served.cluster.denied.add(("create", "daemonsets.apps"))
    asked = {"verb": "create", "resource": "daemonsets", "group": "apps"}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    review = request(served, "POST", path, {"spec": {"resourceAttributes": asked}}).json()
    refused = request(served, "POST", "/apis/apps/v1/namespaces/default/daemonsets", {})

    assert review["status"]["allowed"] is False
    assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")


def test_request_when_dry_run_then_answered_and_not_stored(served: Served) -> None:
    made = request(served, "POST", "/api/v1/namespaces?dryRun=All", {"metadata": {"name": "x"}})

    assert made.status_code == 201
    assert request(served, "GET", "/api/v1/namespaces/x").status_code == 404


def test_eviction_when_a_budget_allows_none_then_429_and_without_it_pod_goes(fleet: Served) -> None:
    pods = "/api/v1/namespaces/default/pods"
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    pod = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    request(fleet, "POST", pods, pod)
    rule = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    request(fleet, "POST", budgets, {"metadata": {"name": "keep"}, "spec": rule})
    wait_for(lambda: request(fleet, "GET", f"{pods}/p").json()["status"]["phase"] == "Running")

    refused = request(fleet, "POST", f"{pods}/p/eviction", {"kind": "Eviction"})
    request(fleet, "DELETE", f"{budgets}/keep")
    allowed = request(fleet, "POST", f"{pods}/p/eviction", {"kind": "Eviction"})

    assert (refused.status_code, refused.json()["reason"]) == (429, "TooManyRequests")
    assert allowed.status_code == 201
    wait_for(lambda: request(fleet, "GET", f"{pods}/p").status_code == 404)


def test_lightkube_when_listing_and_watching_then_typed_objects(fleet: Served, kubeconfig: Path) -> None:
    lightkube = pytest.importorskip("lightkube")
    import httpx2  # noqa: PLC0415 -- lightkube's own
    from lightkube.config.kubeconfig import KubeConfig  # noqa: PLC0415 -- optional here
    from lightkube.resources.core_v1 import ConfigMap, Node  # noqa: PLC0415 -- optional here

    config, patient = KubeConfig.from_file(kubeconfig), httpx2.Timeout(60)
    with lightkube.Client(config=config, trust_env=False, timeout=patient) as client:

        def names() -> set[str]:
            return {node.metadata.name for node in client.list(Node)}

        wait_for(lambda: names() >= {"system", "single"}, names)
        sent = ConfigMap.from_dict({"metadata": {"name": "cm", "namespace": "default"}, "data": {"a": "b"}})
        made = client.create(sent)
        event, watched = next(iter(client.watch(ConfigMap, namespace="default")))

    assert made.metadata.uid
    assert (event, watched.metadata.name) == ("ADDED", "cm")


@pytest.mark.clients("kubectl")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("pod.spec.tolerations", "FIELD: tolerations <[]Toleration>"),
        ("node.spec.taints.effect", "FIELD: effect <string>"),
        ("deployment.spec.strategy.rollingUpdate.maxSurge", "FIELD: maxSurge <IntOrString>"),
        ("pod.spec.containers.resources.limits", "FIELD: limits <map[string]Quantity>"),
    ],
)
def test_kubectl_when_asked_to_explain_then_the_published_types_are_shown(
    served: Served, kubeconfig: Path, path: str, expected: str
) -> None:
    text = kubectl(kubeconfig, "explain", path)

    assert expected in text
    assert "<empty>" not in text


@pytest.mark.clients("kubectl")
def test_kubectl_when_asked_who_and_how_then_answered(served: Served, kubeconfig: Path) -> None:
    assert SANDBOX_ADMIN.name in kubectl(kubeconfig, "auth", "whoami")
    assert kubectl(kubeconfig, "get", "--raw", "/readyz") == "ok"
    assert "/apis/apps" in kubectl(kubeconfig, "get", "--raw", "/")


def refused(kubeconfig: Path, *args: str) -> str:
    """What kubectl prints when the server refuses."""
    client("kubectl")
    env = {**os.environ, "HOME": str(kubeconfig.parent), "KUBECONFIG": str(kubeconfig)}
    done = run_client(["kubectl", *args], env)
    assert done.returncode != 0, done.stdout
    return done.stderr


@pytest.mark.clients("kubectl")
def test_kubectl_when_running_nvidia_smi_in_a_pod_then_it_lists_what_the_pod_holds(
    fleet: Served, kubeconfig: Path
) -> None:
    shown(kubeconfig, "Ready", "get", "node", "single", "--ignore-not-found")
    containers = [{"name": "main", "image": "cuda", "command": ["sleep", "infinity"]}]
    pod = {"metadata": {"name": "shell"}, "spec": {"nodeName": "single", "containers": containers}}
    request(fleet, "POST", "/api/v1/namespaces/default/pods", pod)
    kubectl(kubeconfig, "wait", "--for=condition=Ready", "pod/shell", "--timeout=60s")

    assert kubectl(kubeconfig, "exec", "shell", "--", "nvidia-smi", "-L").count("MIG 1g.5gb") == 56
    assert "does not emulate exec of ls" in refused(kubeconfig, "exec", "shell", "--", "ls")
    assert "does not emulate attach" in refused(kubeconfig, "attach", "shell")
    assert "not found" in refused(kubeconfig, "exec", "none", "--", "nvidia-smi")


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
@pytest.mark.parametrize("name", ["default", "kube-system"])
def test_namespace_of_the_cluster_when_deleted_then_403(served: Served, name: str, query: str) -> None:
    answer = request(served, "DELETE", f"/api/v1/namespaces/{name}{query}")

    assert (answer.status_code, answer.json()["message"]) == (
        403,
        f'namespaces "{name}" is forbidden: this namespace may not be deleted',
    )


@pytest.mark.clients("kubectl")
def test_kubectl_when_nothing_has_changed_then_diff_shows_nothing(served: Served, kubeconfig: Path) -> None:
    """Not even times, which are moved back by more and more, nor what the server has filled in."""
    served.cluster.tolerate_extended_resources()
    text = """
apiVersion: v1
kind: Pod
metadata: {name: gpu}
spec:
  containers: [{name: main, image: cuda, resources: {limits: {nvidia.com/gpu: 1}}}]
  tolerations: [{key: a, operator: Exists}]
"""
    kubectl(kubeconfig, "apply", "-f", "-", stdin=text)

    assert kubectl(kubeconfig, "diff", "-f", "-", stdin=text) == ""
