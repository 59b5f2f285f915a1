"""The OpenAPI v2 document: what it says, its bytes, and what Helm 3 and kubectl make of it."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
from typing import TYPE_CHECKING

import httpx
import pytest
import yaml
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from gpukube_sandbox.clock import ScaledClock
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.http.app import make_app
from gpukube_sandbox.kube.http.openapi_v2 import document, encoded
from gpukube_sandbox.kube.http.openapi_wire import encode_document
from gpukube_sandbox.kube.store.kinds import BUILT_IN, NODE_FEATURE
from gpukube_sandbox.kube.store.schema import findings
from gpukube_sandbox.kube.store.structure import PATCHES
from sandbox_tests.clients import client

from .clients import run_client
from .conftest import TOKEN, Served, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.requests import Request

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
GVK = "x-kubernetes-group-version-kind"
KINDS = (*BUILT_IN, NODE_FEATURE)

Definitions = dict[str, dict[str, object]]

RICH = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: rich, creationTimestamp: null, labels: {a: b}, annotations: {n: "1"}}
spec:
  selector: {matchLabels: {a: b}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%, maxSurge: 0}}
  template:
    metadata: {labels: {a: b}}
    spec:
      priorityClassName: system-node-critical
      tolerations: [{key: nvidia.com/gpu, operator: Exists}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: In, values: ["true"]}]}]
      containers:
        - name: main
          image: x
          env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
          resources: {limits: {nvidia.com/gpu: 1, cpu: 0.5}}
          securityContext: {privileged: true, capabilities: {add: [SYS_ADMIN]}}
          readinessProbe: {httpGet: {port: http}}
          volumeMounts: [{name: v, mountPath: /v}]
      volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}, {name: h, hostPath: {path: /h, type: Directory}}]
status: null
---
apiVersion: v1
kind: Service
metadata: {name: rich}
spec: {selector: {a: b}, ports: [{port: 80, targetPort: http}, {port: 81, targetPort: 81}]}
---
apiVersion: nfd.k8s-sigs.io/v1alpha1
kind: NodeFeature
metadata: {name: rich}
spec: {anything: [{at: all}, 1, null], labels: null}
more: null
"""
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "nodefeatures.nfd.k8s-sigs.io"},
    "spec": {
        "group": NODE_FEATURE.group,
        "names": {"kind": NODE_FEATURE.kind, "plural": NODE_FEATURE.plural},
        "scope": "Namespaced",
        "versions": [
            {
                "name": NODE_FEATURE.version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


# a reader of its own, written from OpenAPIv2.proto


def pieces(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Take a message apart; all fields of this document are length-delimited."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte, at = raw[at], at + 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(raw):
        tag, length = number(), number()
        assert tag & 7 == 2
        assert at + length <= len(raw)
        yield tag >> 3, raw[at : at + length]
        at += length


def pair(raw: bytes) -> tuple[str, bytes]:
    fields = dict(pieces(raw))
    return fields[1].decode(), fields[2]


def schema(raw: bytes) -> dict[str, object]:
    found: dict[str, object] = {}
    for number, value in pieces(raw):
        if number == 1:
            found["$ref"] = value.decode()
        elif number == 22:
            found["type"] = dict(pieces(value))[1].decode()
        elif number == 23:
            found["items"] = schema(dict(pieces(value))[1])
        elif number == 25:
            found["properties"] = {name: schema(item) for name, item in map(pair, (v for _, v in pieces(value)))}
        elif number == 31:
            name, carried = pair(value)
            found[name] = yaml.safe_load(dict(pieces(carried))[2])
        else:
            pytest.fail(f"field {number} of a schema is not known")
    return found


def read(raw: bytes) -> dict[str, object]:
    fields = dict(pieces(raw))
    info = dict(pieces(fields[2]))
    return {
        "swagger": fields[1].decode(),
        "info": {"title": info[1].decode(), "version": info[2].decode()},
        "paths": dict(pieces(fields[8])),
        "definitions": {name: schema(item) for name, item in map(pair, (v for _, v in pieces(fields[9])))},
    }


def definitions() -> Definitions:
    found: Definitions = document(KINDS)["definitions"]
    return found


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_document_when_encoded_then_protobuf_and_json_say_the_same() -> None:
    packed, packed_as = encoded(KINDS, PROTOBUF)
    plain, plain_as = encoded(KINDS, "application/json, */*")

    assert read(packed) == json.loads(plain) == document(KINDS)
    # Go's mime.ParseMediaType refuses an "@" in the type of an answer.
    assert (packed_as, plain_as) == (PROTOBUF.replace("@", "."), "application/json")


def test_document_when_a_type_is_known_then_one_definition_names_it() -> None:
    named = [json.dumps(gvk) for entry in definitions().values() for gvk in entry.get(GVK, ())]  # type: ignore[attr-defined]  # a list of dicts

    assert sorted(named) == sorted(
        json.dumps({"group": kind.group, "version": kind.version, "kind": kind.kind}) for kind in KINDS
    )


def test_document_when_it_refers_then_the_definition_is_there() -> None:
    found = definitions()

    assert {reference.removeprefix("#/definitions/") for reference in references(found)} <= set(found)


def test_document_when_type_is_not_checked_then_nothing_is_claimed() -> None:
    open_types = {name: entry for name, entry in definitions().items() if "properties" not in entry}

    assert "io.k8s-sigs.nfd.v1alpha1.NodeFeature" in open_types
    assert all(set(entry) == {GVK} for entry in open_types.values())


@pytest.mark.parametrize(
    ("field", "value", "declared"),
    [
        ("spec", {"containers": {}}, "array"),
        ("spec", {"nodeSelector": []}, "object"),
        ("spec", {"hostNetwork": "yes"}, "boolean"),
        ("spec", {"priority": "high"}, "integer"),
        ("spec", {"nodeName": 1}, "string"),
        ("metadata", {"clusterName": 1}, None),
        ("metadata", {"creationTimestamp": 1}, None),
    ],
)
def test_document_when_server_checks_a_field_then_its_type_is_declared_and_else_open(
    field: str, value: dict[str, object], declared: str | None
) -> None:
    found = definitions()
    top: dict[str, dict[str, str]] = found["io.k8s.api.core.v1.Pod"]["properties"]  # type: ignore[assignment]  # plain data
    below: dict[str, dict[str, str]] = found[top[field]["$ref"].removeprefix("#/definitions/")]["properties"]  # type: ignore[assignment]  # as above
    (name,) = value

    assert below[name].get("type") == declared
    assert bool(findings("", "Pod", {field: value})) is (declared is not None)


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("core.v1.PodSpec", "containers"),
        ("core.v1.PodSpec", "initContainers"),
        ("core.v1.PodSpec", "volumes"),
        ("core.v1.PodSpec", "imagePullSecrets"),
        ("core.v1.PodSpec", "hostAliases"),
        ("core.v1.PodSpec", "topologySpreadConstraints"),
        ("core.v1.Container", "env"),
        ("core.v1.Container", "ports"),
        ("core.v1.Container", "volumeMounts"),
        ("core.v1.Container", "volumeDevices"),
        ("core.v1.ServiceAccount", "secrets"),
        ("core.v1.NodeStatus", "addresses"),
        ("core.v1.NodeStatus", "conditions"),
        ("meta.v1.ObjectMeta", "ownerReferences"),
    ],
)
def test_document_when_a_patch_merges_the_list_then_the_merge_key_is_the_server_s(model: str, field: str) -> None:
    entry: dict[str, dict[str, str]] = definitions()[f"io.k8s.api.{model}"]["properties"]  # type: ignore[assignment]  # plain data

    strategy, key = PATCHES[model.rpartition(".")[2], field]
    assert entry[field]["x-kubernetes-patch-merge-key"] == key
    assert entry[field]["x-kubernetes-patch-strategy"] == strategy


def test_encode_when_the_table_lacks_a_field_then_it_is_not_left_out_silently() -> None:
    with pytest.raises(KeyError):
        encode_document({"definitions": {"x": {"pattern": "^a$"}}})


# over the wire


@pytest.fixture
def before_v3(tmp_path: Path) -> Iterator[Served]:
    """A cluster whose API says nothing of version 3, so that clients of today check by version 2 as well."""

    async def absent(_request: Request) -> PlainTextResponse:
        return PlainTextResponse("not found", 404)

    cluster = KubeCluster("train", ScaledClock(200.0), TOKEN)
    routes = [Route("/openapi/v3", absent), Route("/openapi/v3/{rest:path}", absent), Mount("/", make_app(cluster))]
    with serve(cluster, Starlette(routes=routes), tmp_path) as running:
        yield running


@pytest.fixture
def access(before_v3: Served, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(before_v3.kubeconfig())
    path.chmod(0o600)
    return path


def run(program: str, access: Path, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(access.parent), "KUBECONFIG": str(access)}
    return run_client([program, *args], env, stdin)


@pytest.fixture
def kubectl() -> str:
    return client("kubectl")


@pytest.fixture
def helm() -> str:
    path = client("helm")
    told = subprocess.run([path, "version", "--short"], capture_output=True, text=True, check=True, timeout=60).stdout
    return path if told.startswith("v3.") else pytest.skip(f"helm 3 checks by version 2, and this is {told.strip()}")


def define_custom_type(served: Served) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    trusted = ssl.create_default_context(cadata=served.ca_pem)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    with httpx.Client(base_url=served.url, verify=trusted, trust_env=False, headers=headers, timeout=60) as client:
        assert client.post(path, json=CRD).status_code == 201


def one_of_each() -> str:
    """The least object of every type that can be stored, and a few with much in them."""
    stored = [kind for kind in KINDS if not kind.group.startswith("auth")]
    bare = [{"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "bare"}} for kind in stored]
    return "---\n".join([*(yaml.safe_dump(obj) for obj in bare), RICH.lstrip()])


def chart_of(directory: Path, manifest: str) -> Path:
    chart = directory / "every-type"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: every-type\nversion: 1.0.0\n")
    (chart / "templates" / "all.yaml").write_text(manifest)
    return chart


def test_request_when_json_is_asked_for_then_custom_types_are_in_it(before_v3: Served) -> None:
    define_custom_type(before_v3)
    headers = {"authorization": f"Bearer {TOKEN}", "accept": "application/json"}
    trusted = ssl.create_default_context(cadata=before_v3.ca_pem)
    with httpx.Client(base_url=before_v3.url, verify=trusted, trust_env=False, headers=headers, timeout=60) as client:
        answer = client.get("/openapi/v2")

    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == document(KINDS)


@pytest.mark.clients("helm")
def test_helm_when_chart_has_every_type_then_all_pass(
    before_v3: Served, access: Path, tmp_path: Path, helm: str
) -> None:
    define_custom_type(before_v3)
    done = run(helm, access, "template", "--validate", "every-type", str(chart_of(tmp_path, one_of_each())))

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nkind: ") >= len(KINDS) - 4


@pytest.mark.clients("helm")
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("tolerations:", "tolerationz:"), 'unknown field "tolerationz"'),
        (("privileged: true", "privileged: [true]"), "privileged"),
        (("containers:", "containers: {} #"), "containers"),
    ],
)
def test_helm_when_a_field_is_wrong_then_refused_before_anything_is_sent(  # noqa: PLR0913, PLR0917 -- fixtures
    before_v3: Served, access: Path, tmp_path: Path, helm: str, change: tuple[str, str], text: str
) -> None:
    define_custom_type(before_v3)
    manifest = RICH.replace(*change)
    if change[0] == "containers:":
        manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: {}}\n"
    done = run(helm, access, "install", "every-type", str(chart_of(tmp_path, manifest)))

    assert done.returncode == 1
    assert "error validating data" in done.stderr
    assert text in done.stderr


@pytest.mark.clients("kubectl")
def test_kubectl_when_it_checks_by_version_2_then_every_type_passes(
    before_v3: Served, access: Path, kubectl: str
) -> None:
    define_custom_type(before_v3)
    done = run(kubectl, access, "create", "--dry-run=client", "--validate=true", "-f", "-", stdin=one_of_each())

    assert done.returncode == 0, done.stderr


@pytest.mark.clients("kubectl")
def test_kubectl_when_it_checks_by_version_2_then_unknown_field_is_refused(access: Path, kubectl: str) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndatum: {a: b}\n"
    done = run(kubectl, access, "apply", "--validate=true", "-f", "-", stdin=text)

    assert done.returncode == 1
    assert 'unknown field "datum" in io.k8s.api.core.v1.ConfigMap' in done.stderr


@pytest.mark.clients("kubectl")
def test_kubectl_when_a_container_is_taken_out_then_apply_takes_it_out(access: Path, kubectl: str) -> None:
    def deployment(*names: str) -> str:
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": n, "image": n} for n in names]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
        return yaml.safe_dump({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec})

    texts = (deployment("a", "b"), deployment("a"))
    done = [run(kubectl, access, "apply", "--validate=true", "-f", "-", stdin=text) for text in texts]
    left = run(kubectl, access, "get", "deploy", "x", "-o", "jsonpath={.spec.template.spec.containers[*].name}")

    assert [(each.returncode, each.stderr) for each in done] == [(0, ""), (0, "")]
    assert (left.stdout, left.stderr) == ("a", "")
