"""The Kubernetes client against an emulated cluster: what it reads, and what goes wrong."""

from __future__ import annotations

import base64
import json
import socket
import tempfile
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import httpx2
import pytest
from lightkube import ApiError

from gpukube.cluster.kube.client import connect_kube
from gpukube.cluster.kube.connection import server_of
from gpukube.cluster.kube.evictions import EvictionAnswer
from gpukube.cluster.kube.failures import explain
from gpukube.cluster.names import NAMESPACE, NAMESPACE_LABELS
from gpukube.cluster.state.snapshot import Snapshot, look
from gpukube.core.jsontree import text
from gpukube.core.values import KubeAccess, Taint
from gpukube.errors import AccessError, ClusterError, Where
from gpukube_sandbox.kube.nodes.shapes import NodeShape
from gpukube_sandbox.kube.nodes.shapes import Taint as SandboxTaint
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.tls import make_tls
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.wire.cluster.conftest import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.cluster.kube.client import Kube, LightKube
    from tests.wire.cluster.conftest import Live


def join(live: Live, kube: LightKube, shape: NodeShape) -> None:
    live.run(live.cluster.add_node(shape))
    wait_for(lambda: any(node.name == shape.name and node.ready for node in kube.nodes()))


def test_version_when_asked_then_without_the_v(kube: LightKube, live: Live) -> None:
    assert kube.version() == live.cluster.kubernetes_version
    assert kube.server == live.url


def test_time_when_asked_then_the_clusters_own_however_fast_it_runs(kube: LightKube, live: Live) -> None:
    before = live.cluster.clock.now()
    told = kube.time()
    assert told is not None
    assert int(before) <= told <= live.cluster.clock.now()


def test_pods_when_listed_by_node_then_from_the_store_and_never_from_a_cache(
    kube: LightKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[httpx2.URL] = []
    transport = kube._client._client._client
    send = transport.send

    def noted(request: httpx2.Request, *, stream: bool = False) -> httpx2.Response:
        sent.append(request.url)
        return send(request, stream=stream)

    monkeypatch.setattr(transport, "send", noted)
    assert kube.all_pods_on(["n1"]) == ()
    (url,) = sent
    assert url.params["fieldSelector"] == "spec.nodeName=n1"
    assert "resourceVersion" not in url.params


def test_nodes_when_one_joined_then_read_with_labels_and_taints(kube: LightKube, live: Live) -> None:
    taint = SandboxTaint("dedicated", "vision", "NoSchedule")
    join(live, kube, NodeShape(name="n1", labels={"a": "b"}, taints=(taint,), boot_s=1.0))
    (node,) = kube.nodes({"a": "b"})
    assert (node.name, node.ready) == ("n1", True)
    assert Taint("dedicated", "vision", "NoSchedule") in node.taints
    assert node.labels["a"] == "b"
    assert kube.nodes({"a": "c"}) == ()


def test_look_when_the_cluster_is_empty_then_nothing_is_seen(kube: LightKube) -> None:
    assert look(kube) == Snapshot()


def test_ensure_namespace_when_missing_then_made_and_again_is_fine(kube: LightKube) -> None:
    assert kube.namespace_labels(NAMESPACE) is None
    kube.ensure_namespace(NAMESPACE, NAMESPACE_LABELS)
    kube.ensure_namespace(NAMESPACE, NAMESPACE_LABELS)
    assert NAMESPACE_LABELS.items() <= (kube.namespace_labels(NAMESPACE) or {}).items()


def test_ensure_namespace_when_it_lacks_a_label_then_added_and_others_stay(kube: LightKube) -> None:
    kube.ensure_namespace(NAMESPACE, {"team": "x"})
    kube.ensure_namespace(NAMESPACE, NAMESPACE_LABELS)
    labels = kube.namespace_labels(NAMESPACE) or {}
    assert {"team": "x", **NAMESPACE_LABELS}.items() <= labels.items()


def test_delete_secret_when_missing_then_fine(kube: LightKube) -> None:
    kube.delete_secret("default", "nothing")
    assert kube.config_map("default", "nothing") is None


def test_object_names_when_the_type_is_unknown_then_none(kube: LightKube) -> None:
    assert kube.object_names("nvidia.com", "clusterpolicies", ("v1",)) is None
    assert kube.object_names("resource.k8s.io", "deviceclasses", ("v1",)) == ()


def test_may_when_something_is_denied_then_false(kube: LightKube, live: Live) -> None:
    assert kube.may("create", "daemonsets", group="apps", namespace=NAMESPACE)
    live.cluster.denied.add(("create", "daemonsets.apps"))
    assert not kube.may("create", "daemonsets", group="apps", namespace=NAMESPACE)


def test_evict_when_a_budget_refuses_or_the_pod_is_another_then_told_apart(kube: LightKube, live: Live) -> None:
    join(live, kube, NodeShape(name="n1", boot_s=1.0))
    for name in ("free", "kept"):
        labels: dict[str, object] = {"name": name, "namespace": "default", "labels": {"app": name}}
        pod = {
            "metadata": labels,
            "spec": {"containers": [{"name": "main", "image": "x", "command": ["sleep", "9999"]}]},
        }
        live.run(made(live, "pods", pod))
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    live.run(made(live, "poddisruptionbudgets", {"metadata": {"name": "b", "namespace": "default"}, "spec": budget}))
    wait_for(lambda: {pod.ready for pod in kube.pods()} == {True})
    free, kept = sorted(kube.all_pods_on(["n1"]), key=lambda pod: text(pod, "metadata", "name"))
    refused = kube.evict("default", "kept", text(kept, "metadata", "uid"))
    assert (refused.refusal, refused.message) == (
        "budget",
        "The disruption budget b needs 1 healthy pods and has 1 currently",
    )
    assert kube.evict("default", "free", "another") == EvictionAnswer()  # a pod of this name that is not meant
    assert not any(pod.terminating for pod in kube.pods())
    assert kube.evict("default", "free", text(free, "metadata", "uid")) == EvictionAnswer()
    assert [pod.name for pod in kube.pods() if not pod.terminating] == ["kept"]
    assert kube.evict("default", "absent", "x") == EvictionAnswer()
    live.cluster.denied.add(("create", "pods/eviction"))
    with pytest.raises(AccessError):
        kube.evict("default", "kept", text(kept, "metadata", "uid"))


async def made(live: Live, plural: str, obj: dict[str, object]) -> None:
    live.cluster.store.create(CORE[plural], obj)


# What goes wrong

CALLS: dict[str, Callable[[Kube], object]] = {
    "version": lambda kube: kube.version(),
    "nodes": lambda kube: kube.nodes(),
    "config map": lambda kube: kube.config_map("default", "x"),
    "secrets": lambda kube: kube.release_secrets(),
    "namespace": lambda kube: kube.ensure_namespace("x", {}),
    "look": look,
}


@pytest.mark.parametrize("case", CALLS)
def test_call_when_the_token_is_wrong_then_access_error(live: Live, case: str) -> None:
    with closing(connect_kube(live.access(token="wrong"), PATIENCE_S)) as kube, pytest.raises(AccessError) as caught:
        CALLS[case](kube)
    assert caught.value.diagnostics[0].code == "kube-unauthorized"
    assert "wrong" not in caught.value.render()


def test_call_when_forbidden_then_access_error_names_it(kube: LightKube, live: Live) -> None:
    live.cluster.denied.add(("list", "nodes"))
    with pytest.raises(AccessError) as caught:
        kube.nodes()
    assert caught.value.diagnostics[0].code == "kube-forbidden"
    assert "while listing nodes" in caught.value.render()


@pytest.mark.parametrize("case", CALLS)
def test_call_when_nobody_listens_then_cluster_error(live: Live, case: str) -> None:
    nobody = live.access(url="https://127.0.0.1:9")
    with closing(connect_kube(nobody, PATIENCE_S)) as kube, pytest.raises(ClusterError) as caught:
        CALLS[case](kube)
    assert caught.value.diagnostics[0].code == "cluster-unreachable"
    assert caught.value.diagnostics[0].where.source == "https://127.0.0.1:9"


def test_call_when_the_server_is_silent_then_ended_in_time(live: Live) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        access = live.access(url=f"https://127.0.0.1:{silent.getsockname()[1]}")
        with closing(connect_kube(access, 0.3)) as kube, pytest.raises(ClusterError) as caught:
            kube.version()
    assert caught.value.diagnostics[0].code == "cluster-timeout"


VERSION = b'{"major": "1", "minor": "34", "gitVersion": "v1.34.2"}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(VERSION) + VERSION


@contextmanager
def hanging_up(answers: list[int]) -> Iterator[tuple[str, list[bytes]]]:
    """Serve one connection after the other: so many answers, then the next request is read and the line cut.

    Gives the address, and the first line of each request that came.
    """
    came: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        for count in answers:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as lines:
                for number in range(count + 1):
                    came.append(lines.readline())
                    length = 0
                    while (line := lines.readline()) not in (b"\r\n", b""):
                        name, _, value = line.partition(b":")
                        length = int(value) if name.lower() == b"content-length" else length
                    lines.read(length)
                    if number < count:
                        connection.sendall(ANSWER)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", came
        thread.join(PATIENCE_S)


def test_read_when_an_idle_connection_was_closed_then_done_once_more(live: Live) -> None:
    with hanging_up([1, 1]) as (url, came), closing(connect_kube(live.access(url=url), PATIENCE_S)) as kube:
        assert [kube.version(), kube.version()] == ["1.34.2"] * 2
    assert came == [b"GET /version HTTP/1.1\r\n"] * 3 + [b""]


def test_read_when_the_connection_breaks_twice_then_cluster_error(live: Live) -> None:
    with (
        hanging_up([0, 0]) as (url, came),
        closing(connect_kube(live.access(url=url), PATIENCE_S)) as kube,
        pytest.raises(ClusterError),
    ):
        kube.version()
    assert len(came) == 2


def test_write_when_the_connection_breaks_then_it_is_not_sent_again(live: Live) -> None:
    with (
        hanging_up([0]) as (url, came),
        closing(connect_kube(live.access(url=url), PATIENCE_S)) as kube,
        pytest.raises(ClusterError),
    ):
        kube.may("create", "secrets")
    assert [line.split()[0] for line in came] == [b"POST"]


def test_call_when_the_authority_is_another_then_cluster_error(live: Live) -> None:
    text = json.loads(live.access().kubeconfig)
    del text["clusters"][0]["cluster"]["certificate-authority-data"]
    access = KubeAccess(json.dumps(text))
    with closing(connect_kube(access, PATIENCE_S)) as kube, pytest.raises(ClusterError) as caught:
        kube.version()
    assert "CERTIFICATE_VERIFY_FAILED" in caught.value.render()
    assert "certificate-authority-data" in caught.value.diagnostics[0].fix


def test_call_when_the_name_does_not_resolve_then_dns_is_named(live: Live) -> None:
    access = live.access(url="https://no-such-cluster.invalid:443")
    with closing(connect_kube(access, PATIENCE_S)) as kube, pytest.raises(ClusterError) as caught:
        kube.version()
    assert "DNS" in caught.value.diagnostics[0].fix


@pytest.mark.parametrize(("minutes", "said"), [(20, "20 min ahead"), (-20, "20 min behind"), (1, "")])
def test_call_when_refused_and_the_clock_is_wrong_then_named(minutes: int, said: str) -> None:
    date = format_datetime(datetime.now(UTC) - timedelta(minutes=minutes))
    request = httpx2.Request("GET", "https://x")
    answer = httpx2.Response(401, headers={"Date": date}, request=request)
    error = explain(Where("x"), "looking", httpx2.HTTPStatusError("", request=request, response=answer))
    (found,) = error.diagnostics
    assert found.why == (f"this machine's clock is {said}" if said else "")
    assert ("set this machine's clock" in found.fix) == bool(said)


@pytest.mark.parametrize("body", [{}, {"kind": "Status", "message": ""}, {"kind": "Status", "message": "Unauthorized"}])
def test_call_when_refused_then_why_is_the_servers_word_or_nothing_and_no_kubeconfig_is_made_up(
    body: dict[str, str],
) -> None:
    request = httpx2.Request("GET", "https://x")
    refused = ApiError(request=request, response=httpx2.Response(401, json=body, request=request))
    (found,) = explain(Where("x"), "looking", refused).diagnostics
    assert found.why == body.get("message", "")
    assert "kubeconfig" not in found.render()


KUBECONFIGS = {
    "nothing": "",
    "no YAML": "a: [",
    "a list": "[]",
    "no context": '{"clusters": [], "contexts": [], "users": []}',
    "a context of no cluster": (
        '{"current-context": "a", "clusters": [], "users": [],'
        ' "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}]}'
    ),
}


@pytest.mark.parametrize("case", KUBECONFIGS)
def test_connect_when_the_kubeconfig_is_no_use_then_access_error(case: str) -> None:
    with pytest.raises(AccessError) as caught:
        connect_kube(KubeAccess(KUBECONFIGS[case]), PATIENCE_S)
    assert caught.value.diagnostics[0].code == "kubeconfig"


def test_connect_when_the_exec_plugin_is_missing_then_access_error(live: Live) -> None:
    text = json.loads(live.access().kubeconfig)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "no-such-login", "args": []}
    text["users"][0]["user"] = {"exec": plugin}
    access = KubeAccess(json.dumps(text))
    with closing(connect_kube(access, PATIENCE_S)) as kube, pytest.raises((AccessError, ClusterError)) as caught:
        kube.nodes()
    assert "no-such-login" in caught.value.render()


GROUP = "client.authentication.k8s.io"


def plugged(live: Live, script: str, version: str = "v1", **others: object) -> KubeAccess:
    """Return a kubeconfig whose user is what a shell script prints."""
    text = json.loads(live.access().kubeconfig)
    plugin = {"apiVersion": f"{GROUP}/{version}", "command": "sh", "args": ["-c", script], "interactiveMode": "Never"}
    text["users"][0]["user"] = {"exec": {**plugin, **others}}
    return KubeAccess(json.dumps(text))


def answer_of(version: str = "v1", **status: str) -> str:
    return json.dumps({"apiVersion": f"{GROUP}/{version}", "kind": "ExecCredential", "status": status})


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_exec_plugin_when_it_gives_a_token_then_used_and_run_again_once_it_is_refused(
    live: Live, tmp_path: Path, version: str
) -> None:
    """The first token has run out; the plugin gets what kubectl would give it."""
    count, info = tmp_path / "count", tmp_path / "info"
    script = (
        f'echo x >> {count}; printf %s "$KUBERNETES_EXEC_INFO" > {info}; '
        f"if [ $(wc -l < {count}) = 1 ]; then echo '{answer_of(version, token='old')}'; "
        f"else echo '{answer_of(version, token=TOKEN)}'; fi"
    )
    access = plugged(live, script, version, provideClusterInfo=True, env=[{"name": "A", "value": "b"}])
    with closing(connect_kube(access, PATIENCE_S)) as kube:
        assert kube.version()
        assert kube.nodes() == ()
    assert count.read_text() == "x\nx\n"
    given = json.loads(info.read_text())
    assert (given["apiVersion"], given["spec"]["cluster"]["server"]) == (f"{GROUP}/{version}", live.url)


NO_CREDENTIALS = {
    "it fails": ("echo CANARY; echo log in first >&2; exit 3", {}, "ended with code 3: log in first"),
    "no JSON": ("echo CANARY", {}, "no ExecCredential"),
    "another version": (f"echo '{answer_of('v1beta1', token='CANARY')}'", {}, "did not answer in"),
    "nothing in it": (f"echo '{answer_of()}'", {}, "neither a token nor a certificate"),
    "half a pair": (f"echo '{answer_of(clientKeyData='CANARY')}'", {}, "neither a token nor a certificate"),
    "a version nobody knows": ("echo", {"apiVersion": f"{GROUP}/v9"}, "v1beta1"),
    "no such program": ("echo", {"command": "no-such-login", "installHint": "get it at x.example"}, "get it at x"),
    "a terminal is wanted": ("echo", {"interactiveMode": "Always"}, "terminal"),
}


@pytest.mark.parametrize("case", NO_CREDENTIALS)
def test_exec_plugin_when_it_gives_no_credentials_then_access_error_that_repeats_none_of_its_output(
    live: Live, case: str
) -> None:
    script, others, expected = NO_CREDENTIALS[case]
    access = plugged(live, script, **others)
    with closing(connect_kube(access, PATIENCE_S)) as kube, pytest.raises(AccessError) as caught:
        kube.nodes()
    said = f"{caught.value.render()} {caught.value.__cause__}"
    assert expected in said
    assert "CANARY" not in said
    assert caught.value.diagnostics[0].code == "kube-credentials"


def test_call_when_a_token_ran_out_then_done_with_another_one_whatever_the_call(live: Live) -> None:
    came: list[int] = []

    def renewed() -> KubeAccess:
        came.append(1)
        return live.access()

    for call in CALLS.values():
        with closing(connect_kube(live.access(token="old"), PATIENCE_S, renewed=renewed)) as kube:
            call(kube)
    assert len(came) == len(CALLS)


def test_call_when_the_new_token_is_no_other_then_refused_at_once(live: Live) -> None:
    wrong = live.access(token="old")
    with closing(connect_kube(wrong, PATIENCE_S, renewed=lambda: wrong)) as kube, pytest.raises(AccessError):
        kube.nodes()


def pair_of(folder: Path, name: str) -> dict[str, str]:
    """Make a certificate with its key, as a kubeconfig embeds them."""
    directory = folder / name
    directory.mkdir()
    tls = make_tls(directory)
    certificate, key = (base64.b64encode(file.read_bytes()).decode() for file in (tls.certificate, tls.key))
    return {"client-certificate-data": certificate, "client-key-data": key}


PAIRS: dict[str, tuple[Callable[[dict[str, str], dict[str, str]], dict[str, str]], str]] = {
    "a pair": (lambda one, _: one, ""),
    "keys of two pairs": (
        lambda one, two: {**one, "client-key-data": two["client-key-data"]},
        "do not match",
    ),
    "no PEM": (lambda one, _: {**one, "client-key-data": base64.b64encode(b"CANARY").decode()}, "not valid PEM"),
    "no base64": (lambda one, _: {**one, "client-key-data": "CANARY"}, "not base64"),
}


@pytest.mark.parametrize("case", PAIRS)
def test_connect_when_keys_are_in_the_kubeconfig_then_none_is_left_in_a_file(
    live: Live, case: str, tmp_path: Path
) -> None:
    user, expected = PAIRS[case]
    text = json.loads(live.access().kubeconfig)
    text["users"][0]["user"] = user(pair_of(tmp_path, "one"), pair_of(tmp_path, "two"))
    access = KubeAccess(json.dumps(text))
    if expected:
        with pytest.raises(AccessError) as caught:
            connect_kube(access, PATIENCE_S)
        assert expected in caught.value.render()
        assert "CANARY" not in caught.value.render()
    else:
        connect_kube(access, PATIENCE_S).close()
    assert list(Path(tempfile.gettempdir()).iterdir()) == []


def test_server_when_the_kubeconfig_is_garbage_then_named_all_the_same() -> None:
    assert server_of(KubeAccess("a: [")) == "the cluster"
