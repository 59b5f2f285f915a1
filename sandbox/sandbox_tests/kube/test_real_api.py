"""The emulated API beside a real API server: the same requests to both, the same answers."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gpukube_sandbox.clock import ScaledClock
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.controlplane import ControlPlane, find_assets
from gpukube_sandbox.kube.http.app import make_app
from gpukube_sandbox.kube.store import structure
from gpukube_sandbox.kube.store.kinds import BUILT_IN
from gpukube_sandbox.kube.store.schema import model_of
from sandbox_tests.waiting import PATIENCE_S

from .conftest import TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject

ASSETS = find_assets()
pytestmark = [
    pytest.mark.kube,
    pytest.mark.skipif(ASSETS is None, reason="KUBEBUILDER_ASSETS names no directory with etcd and kube-apiserver"),
]
SEQUENCES = 50
WIDGETS: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "tags": {
                                        "type": "array",
                                        "items": {"type": "string"},
                                        "x-kubernetes-list-type": "set",
                                    },
                                    "parts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
                                        },
                                    },
                                    "plain": {"type": "array", "items": {"type": "string"}},
                                    "free": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "whole": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "additionalProperties": {"type": "string"},
                                    },
                                    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A real API server without controllers, which would change what the test has written."""
    assert ASSETS is not None
    alone: Path = tmp_path_factory.mktemp("assets")
    for name in ("etcd", "kube-apiserver"):
        (alone / name).symlink_to(ASSETS / name)
    plane = ControlPlane(alone, TOKEN)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(plane.start(), loop).result()
    headers = {"authorization": f"Bearer {TOKEN}"}
    trusted = ssl.create_default_context(cadata=plane.ca_pem)
    with httpx.Client(base_url=plane.url, headers=headers, verify=trusted, trust_env=False, timeout=60) as client:
        yield client
    asyncio.run_coroutine_threadsafe(plane.stop(), loop).result(PATIENCE_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE_S)
    loop.close()


class Emulated:
    """The emulated API in this process, called like a server."""

    def __init__(self) -> None:
        self.cluster = KubeCluster("twin", ScaledClock(1.0), TOKEN, "1.36.2")
        self._app = make_app(self.cluster)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401 -- as httpx has them
        async def send() -> httpx.Response:
            headers = {"authorization": f"Bearer {TOKEN}"} | more.pop("headers", {})
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)  # a defect is an answer: 500
            async with httpx.AsyncClient(transport=transport, base_url="http://kube", headers=headers) as client:
                return await client.request(method, path, **more)

        return asyncio.run(send())


@pytest.fixture(scope="module")
def emulated() -> Emulated:
    return Emulated()


# structure


def published(real: httpx.Client) -> dict[str, JsonObject]:
    """Read the schemas of the groups that are emulated, by name."""
    found: dict[str, JsonObject] = {}
    for group, version in sorted({(kind.group, kind.version) for kind in BUILT_IN if model_of(kind.group, kind.kind)}):
        place = f"apis/{group}/{version}" if group else f"api/{version}"
        found |= real.get(f"/openapi/v3/{place}").raise_for_status().json()["components"]["schemas"]
    return found


def test_structure_when_compared_with_the_published_types_then_the_same(real: httpx.Client) -> None:
    schemas = published(real)
    mine = [f".{kind.version}.{kind.kind}" for kind in BUILT_IN if model_of(kind.group, kind.kind)]
    waiting = [name for name in schemas if name.endswith(tuple(mine))]
    marked: dict[tuple[str, str], JsonObject] = {}
    atomic: set[str] = set()
    seen: set[str] = set()
    while waiting:
        full = waiting.pop()
        if full not in seen:
            seen.add(full)
            name, schema = full.rpartition(".")[2], schemas[full]
            atomic |= {name} if schema.get("x-kubernetes-map-type") == "atomic" else set()
            for field, part in (schema.get("properties") or {}).items():
                marked[name, field] = {mark.removeprefix("x-kubernetes-"): value for mark, value in part.items()}
                waiting += [reference.rpartition("/")[2] for reference in references(part)]

    assert {
        place: (marks["patch-strategy"], marks.get("patch-merge-key", ""))
        for place, marks in marked.items()
        if "patch-strategy" in marks
    } == structure.PATCHES
    assert {place: keys for place, keys in structure.LIST_KEYS.items() if keys} == {
        place: tuple(marks["list-map-keys"]) for place, marks in marked.items() if "list-map-keys" in marks
    }
    assert {place for place, marks in marked.items() if marks.get("list-type") == "set"} == structure.SETS
    assert {place: marks["map-type"] for place, marks in marked.items() if "map-type" in marks} == structure.MAPS
    assert atomic == structure.ATOMIC_TYPES


def references(part: Any) -> Iterator[str]:  # noqa: ANN401 -- any part of a schema
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


# apply and patches


class Author:
    """Makes up configurations that are valid, from few names and values, so that managers meet."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311 -- test data, no secret

    def some(self, *values: Any) -> list[Any]:  # noqa: ANN401 -- any JSON values
        found = [value for value in values if self._dice.random() < 0.5]
        self._dice.shuffle(found)
        return found

    def one(self, *values: Any) -> Any:  # noqa: ANN401 -- any JSON value
        return self._dice.choice(values)

    def maybe(self, **fields: Any) -> JsonObject:  # noqa: ANN401 -- any JSON values
        return {name: value for name, value in fields.items() if self._dice.random() < 0.55}

    def words(self) -> JsonObject:
        return {key: self.one("1", "2") for key in self.some("a", "b", "c")}

    def meta(self) -> JsonObject:
        owners = [
            {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"00000000-0000-0000-0000-00000000000{name}"}
            for name in self.some("1", "2")
        ]
        return self.maybe(
            labels=self.words(),
            annotations=self.words(),
            finalizers=[f"example.com/{name}" for name in self.some("x", "y", "z")],
            ownerReferences=owners,
        )

    def config_map(self) -> JsonObject:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": self.meta(), **self.maybe(data=self.words())}

    def widget(self) -> JsonObject:
        spec = self.maybe(
            size=self.one(1, 2),
            tags=self.some("a", "b", "c"),
            parts=[{"name": name, **self.maybe(size=self.one(1, 2))} for name in self.some("a", "b", "c")],
            plain=self.some("a", "b"),
            free=self.words(),
            whole=self.words(),
            open={"deep": {"deeper": self.words(), "list": self.some("a", "b")}},
        )
        return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": self.meta(), **self.maybe(spec=spec)}

    def service(self) -> JsonObject:
        ports = [
            {"name": name, "port": port, **protocol, **self.maybe(targetPort=self.one(80, "web"))}
            for name, port, protocol in self.some(
                ("a", 80, self.maybe(protocol="TCP")), ("b", 81, {}), ("c", 82, {"protocol": "UDP"})
            )
        ]
        ports = ports or [{"name": "a", "port": 80}]
        spec = {
            "clusterIP": "None",
            "ipFamilyPolicy": "SingleStack",
            "ipFamilies": ["IPv4"],
            "ports": ports,
            **self.maybe(selector=self.words()),
        }
        return {"apiVersion": "v1", "kind": "Service", "metadata": self.meta(), "spec": spec}

    def node(self) -> JsonObject:
        taints = [
            {"key": key, "effect": self.one("NoSchedule", "NoExecute"), **self.maybe(value="v")}
            for key in self.some("a", "b")
        ]
        spec = self.maybe(unschedulable=True, taints=taints)
        return {"apiVersion": "v1", "kind": "Node", "metadata": self.meta(), **self.maybe(spec=spec)}

    def deployment(self) -> JsonObject:
        containers = [
            {
                "name": name,
                "image": self.one("i:1", "i:2"),
                **self.maybe(
                    args=self.some("x", "y"),
                    env=[{"name": key, "value": self.one("1", "2")} for key in self.some("A", "B", "C")],
                    ports=[
                        {"containerPort": port, **self.maybe(protocol="TCP", name=f"p{port}")}
                        for port in self.some(80, 81, 82)
                    ],
                    resources=self.maybe(limits={"nvidia.com/gpu": self.one("1", "2")}, requests={"cpu": "1"}),
                    volumeMounts=[{"name": "v", "mountPath": path} for path in self.some("/a", "/b")],
                ),
            }
            for name in ["main", *self.some("side", "other")]
        ]
        pod = {
            "containers": containers,
            "volumes": [
                {"name": "v", "emptyDir": {}},
                *({"name": name, "emptyDir": {}} for name in self.some("w", "x")),
            ],
            **self.maybe(
                nodeSelector=self.words(),
                tolerations=[{"key": key, "operator": "Exists"} for key in self.some("a", "b")],
                imagePullSecrets=[{"name": name} for name in self.some("s", "t")],
                topologySpreadConstraints=[
                    {"maxSkew": self.one(1, 2), "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}
                    for key in self.some("zone", "host")
                ],
                terminationGracePeriodSeconds=self.one(1, 2),
            ),
        }
        template = {"metadata": {"labels": {"app": "x", **self.words()}}, "spec": pod}
        strategy = {"type": "RollingUpdate", "rollingUpdate": self.maybe(maxSurge=1)}
        spec = {
            "selector": {"matchLabels": {"app": "x"}},
            "template": template,
            **self.maybe(replicas=self.one(1, 2), strategy=self.one(strategy, {"type": "Recreate"})),
        }
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": self.meta(), "spec": spec}


PLACES = {
    "config_map": "/api/v1/namespaces/default/configmaps/",
    "widget": "/apis/example.com/v1/namespaces/default/widgets/",
    "service": "/api/v1/namespaces/default/services/",
    "node": "/api/v1/nodes/",
    "deployment": "/apis/apps/v1/namespaces/default/deployments/",
}
_INVENTED = ("uid", "resourceVersion", "creationTimestamp", "selfLink")


def comparable(answer: httpx.Response) -> tuple[int, Any]:
    """What must be the same of two answers: all but times and what a server makes up."""
    body = answer.json()
    if answer.status_code >= 400:
        causes = (body.get("details") or {}).get("causes") or ()
        return answer.status_code, sorted((cause.get("field"), cause["message"]) for cause in causes)
    meta = {key: value for key, value in body["metadata"].items() if key not in _INVENTED}
    managed = [{**entry, "time": ""} for entry in meta.pop("managedFields", ())]
    meta["managedFields"] = sorted(json.dumps(entry, sort_keys=True) for entry in managed)
    return answer.status_code, {**{key: value for key, value in body.items() if key != "status"}, "metadata": meta}


def writes(seed: int) -> Iterator[tuple[str, str, str, str, JsonObject]]:
    """A sequence of writes on one object: method, path, query, content type and body."""
    author = Author(seed)
    form = list(PLACES)[seed % len(PLACES)]
    patch = "application/merge-patch+json" if form == "widget" else "application/strategic-merge-patch+json"
    name = f"{form.replace('_', '-')}-{seed}"
    for step in range(9):
        body = getattr(author, form)()
        body["metadata"]["name"] = name
        if not step and author.some(1):
            # Something of its own for who made it: an update of an object without any owner is not tracked there.
            body["metadata"]["annotations"] = {"made": "by hand"}
            yield "POST", PLACES[form], "?fieldManager=edit", "application/json", body
        elif step > 1 and author.some(1):
            yield "PATCH", PLACES[form] + name, f"?fieldManager={author.one('edit', 'one')}", patch, body
        else:
            query = f"?fieldManager={author.one('one', 'two', 'three')}&force={author.one('true', 'false', 'false')}"
            yield "PATCH", PLACES[form] + name, query, "application/apply-patch+yaml", body


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_sequence_when_sent_to_both_then_same_objects_owners_and_conflicts(
    real: httpx.Client, emulated: Emulated, seed: int
) -> None:
    for server in (real, emulated):
        made = server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=WIDGETS)
        assert made.status_code in {201, 409}
    for method, path, query, content_type, body in writes(seed):
        there, here = (
            server.request(method, path + query, content=json.dumps(body), headers={"content-type": content_type})
            for server in (real, emulated)
        )

        assert comparable(here) == comparable(there), json.dumps(body)


# tables, chunks, refusals

_TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
LISTED = [kind for kind in BUILT_IN if not kind.group.startswith(("authentication", "authorization"))]


@pytest.mark.parametrize("kind", LISTED, ids=lambda kind: kind.kind)
def test_table_when_listed_then_columns_are_the_real_server_s(
    real: httpx.Client, emulated: Emulated, kind: Kind
) -> None:
    place = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    here, there = (
        server.request("GET", f"{place}/{kind.plural}", headers=_TABLE).json() for server in (emulated, real)
    )

    assert [(head["name"], head["priority"]) for head in here["columnDefinitions"]] == [
        (head["name"], head["priority"]) for head in there["columnDefinitions"]
    ]


@pytest.mark.parametrize(
    ("place", "body"),
    [
        pytest.param("config_map", {"kind": "ConfigMap", "metadata": {"name": "BAD_Name"}}, id="name"),
        pytest.param(
            "config_map", {"kind": "ConfigMap", "metadata": {"name": "x", "labels": {"a": "b c"}}}, id="label"
        ),
        pytest.param(
            "config_map", {"kind": "ConfigMap", "metadata": {"name": "x", "labels": {"a": "b" * 64}}}, id="long"
        ),
        pytest.param("config_map", {"kind": "ConfigMap", "metadata": {}}, id="no-name"),
    ],
)
def test_object_when_it_is_invalid_then_refused_in_the_same_words(
    real: httpx.Client, emulated: Emulated, place: str, body: JsonObject
) -> None:
    here, there = (
        server.request("POST", PLACES[place], json={"apiVersion": "v1"} | body).json() for server in (emulated, real)
    )

    assert (here["code"], here["reason"], here["message"]) == (there["code"], there["reason"], there["message"])
    assert here["details"]["causes"] == there["details"]["causes"]


def test_list_when_read_in_chunks_then_as_on_the_real_server(real: httpx.Client, emulated: Emulated) -> None:
    """Every chunk is of the moment of the first one, whatever was written since."""
    answers = []
    for server in (real, emulated):
        server.request("POST", "/api/v1/namespaces", json={"metadata": {"name": "chunks"}})
        place, seen, token = "/api/v1/namespaces/chunks/secrets", [], ""
        for name in ("a", "b", "c", "d", "e"):
            server.request("POST", place, json={"metadata": {"name": name}})
        while True:
            page = server.request("GET", f"{place}?limit=2&continue={token}").json()
            left = page["metadata"].get("remainingItemCount")
            seen.append(([item["metadata"]["name"] for item in page["items"]], left))
            server.request("DELETE", f"{place}/d")
            server.request("POST", place, json={"metadata": {"name": "bb"}})
            token = page["metadata"].get("continue", "")
            if not token:
                break
        answers.append((seen, server.request("GET", f"{place}?limit=2&continue=x").status_code))

    assert answers[0] == answers[1] == ([(["a", "b"], 3), (["c", "d"], 1), (["e"], None)], 400)


# rights

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GRANTS: list[tuple[str, JsonObject]] = [
    (
        "/namespaces/default/roles",
        {
            "metadata": {"name": "reader"},
            "rules": [
                {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
                {"apiGroups": ["apps"], "resources": ["*/scale"], "verbs": ["*"]},
                {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["get"]},
            ],
        },
    ),
    (
        "/namespaces/default/rolebindings",
        {
            "metadata": {"name": "bob-reads"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"},
                {"kind": "ServiceAccount", "name": "default", "namespace": "default"},
            ],
        },
    ),
    (
        "/clusterroles",  # there `view` is empty until a controller gathers its rules
        {
            "metadata": {"name": "team-view"},
            "rules": [{"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
        },
    ),
    (
        "/clusterrolebindings",
        {
            "metadata": {"name": "team-views"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "team-view"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "team"}],
        },
    ),
]
_USERS = {
    "bob": {"impersonate-user": "bob"},
    "account": {"impersonate-user": "system:serviceaccount:default:default"},
    "team": {"impersonate-user": "eve", "impersonate-group": "team"},
    "nobody": {"impersonate-user": "mallory"},
    "anonymous": {"impersonate-user": "system:anonymous"},
}
_ASKED = [
    ("GET", "/api/v1/namespaces/default/pods"),
    ("GET", "/api/v1/namespaces/kube-public/pods"),
    ("GET", "/api/v1/pods"),
    ("GET", "/api/v1/namespaces/default/configmaps/mine"),
    ("GET", "/api/v1/namespaces/default/configmaps/other"),
    ("DELETE", "/api/v1/namespaces/default/pods/none"),
    ("GET", "/api/v1/namespaces/default/secrets"),
    ("GET", "/apis/apps/v1/namespaces/default/deployments/none/scale"),
    ("GET", "/api/v1/nodes"),
    ("GET", "/apis/apps/v1"),
    ("GET", "/version"),
    ("DELETE", "/api/v1/namespaces/kube-system?dryRun=All"),
]


@pytest.fixture(scope="module")
def granted(real: httpx.Client, emulated: Emulated) -> tuple[httpx.Client, Emulated]:
    """Both servers, with the same roles."""
    for server in (real, emulated):
        for place, body in _GRANTS:
            made = server.request("POST", _RBAC + place, json=body)
            assert made.status_code == 201, made.text
    return real, emulated


@pytest.mark.parametrize("user", _USERS)
@pytest.mark.parametrize(("method", "path"), _ASKED)
def test_request_when_a_user_makes_it_then_the_same_may_pass(
    granted: tuple[httpx.Client, Emulated], user: str, method: str, path: str
) -> None:
    there, here = (server.request(method, path, headers=_USERS[user]) for server in granted)

    assert here.status_code == there.status_code
    if there.status_code == 403:
        assert here.json()["message"] == there.json()["message"]
        assert (here.json().get("details") or {}) == (there.json().get("details") or {})
