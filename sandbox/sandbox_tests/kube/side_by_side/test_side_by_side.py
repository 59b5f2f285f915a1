"""Some four hundred and forty requests and a hundred kubectl commands, to a real API server and to the emulated one.

What differs in status is named here with its reason: anything else fails. `pytest -m kube -rP` shows the figures, and
the answers that have the same status in other words.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from gpukube_sandbox.clock import ScaledClock
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.http.app import make_app
from sandbox_tests.kube.conftest import TOKEN, serve
from sandbox_tests.kube.test_real_api import Emulated, pytestmark, real
from sandbox_tests.waiting import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx

__all__ = ["pytestmark", "real"]

HERE: Final = Path(__file__).parent
DIFFERENT: Final[Mapping[str, str]] = {
    "autoscale deployment web --min=1 --max=3 --cpu-percent=80": "nothing scales by it here: refused, with the reason",
    "debug one --image=busybox": "no container joins a pod here: refused, with the reason",
    "get events.v1.events.k8s.io": "events are those of the core group alone",
    "delete deployment web --wait=false": "orphans are let go by a controller, which this real API server is without",
}  # fmt: skip
"""Request or command whose status differs -> why it may."""
MOST_DIFFERENT: Final = 0.05
PATCH_TYPES: Final = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
RAYS: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "rays.ray.example.com"},
    "spec": {
        "group": "ray.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Ray", "plural": "rays", "singular": "ray", "listKind": "RayList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {}}}],
    },
}
RAY: Final = yaml.safe_load("""
type: object
required: [spec]
properties:
  spec:
    type: object
    required: [head]
    properties:
      head: {type: object, properties: {params: {type: object, additionalProperties: {type: string}}}}
      mode: {type: string, enum: [Serve, Train]}
      note: {type: string, nullable: true}
      port: {x-kubernetes-int-or-string: true}
      tags: {type: array, maxItems: 3, items: {type: string}, x-kubernetes-list-type: set}
      open: {type: object, x-kubernetes-preserve-unknown-fields: true}
      groups:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name]
          properties:
            name: {type: string, pattern: "^[a-z-]+$", maxLength: 32}
            replicas: {type: integer, format: int32, minimum: 0, maximum: 100, default: 1}
            minReplicas: {type: integer}
            maxReplicas: {type: integer}
""")


def merged(base: Any, change: Any) -> Any:  # noqa: ANN401 -- any JSON value
    """Apply a merge patch (RFC 7386)."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    whole = {key: merged(base.get(key, {}), value) for key, value in change.items() if value is not None}
    return {key: value for key, value in base.items() if key not in change} | whole


class Both:
    """The two servers, and what each said."""

    def __init__(self, real: httpx.Client, emulated: Emulated) -> None:
        self._sides = (real, emulated)
        self.answers: dict[str, tuple[httpx.Response, httpx.Response]] = {}

    def ask(self, name: str, method: str, path: str, **more: Any) -> None:  # noqa: ANN401 -- as httpx has them
        """Send one request to both, and keep the answers under its name."""
        assert name not in self.answers
        answers = [side.request(method, path, **more) for side in self._sides]
        self.answers[name] = (answers[0], answers[1])

    def make(self, path: str, body: Mapping[str, Any]) -> None:
        """Make an object that both must take."""
        for side in self._sides:
            made = side.request("POST", path, json=body)
            assert made.status_code == 201, made.text


def named(obj: dict[str, Any], number: int) -> Any:  # noqa: ANN401 -- an object
    """Give an object a name of its own, unless it has one."""
    return merged({"metadata": {"name": f"x{number}"}}, obj)


def send(both: Both) -> None:
    """Send all of requests.yaml."""
    number = 0
    for group, part in yaml.safe_load((HERE / "requests.yaml").read_text("utf-8")).items():
        for case, change in part.get("cases", {}).items():
            number += 1
            own = dict(change)
            path, query = own.pop("path", part["path"]), own.pop("query", "")
            again = own.pop("again", False)
            body = named(merged(own.pop("object", part["object"]), own), number)
            if again:
                both.make(path, body)
            both.ask(f"{group}: {case}", "POST", f"{path}?{query}", json=body)
        for case, told in part.get("patches", {}).items():
            number += 1
            both.make(part["path"], named(merged(part["object"], told.get("before", {})), number))
            path = "/".join(filter(None, (part["path"], f"x{number}", told.get("path"))))
            headers = {"content-type": PATCH_TYPES[told.get("type", "strategic")]}
            query = told.get("query", "")
            both.ask(f"{group}: {case}", "PATCH", f"{path}?{query}", json=told["patch"], headers=headers)
        for case, told in part.get("requests", {}).items():
            number += 1
            path = part["path"] + told.get("path", "")
            if told.get("item"):
                both.make(part["path"], named(part["object"], number))
                path += f"/x{number}"
            path = told["path"][1:] if told.get("path", "").startswith("=") else path
            content = {"content": told["text"]} if "text" in told else {"json": told["body"]} if "body" in told else {}
            both.ask(
                f"{group}: {case}", told["method"], f"{path}?{told.get('query', '')}",
                headers=told.get("headers", {}), **content,
            )  # fmt: skip


@pytest.fixture(scope="module")
def both(real: httpx.Client) -> Both:
    """Bring both to a namespace with its service account, and to a resource of one's own."""
    emulated = Emulated()
    place = "/api/v1/namespaces/default"
    wait_for(lambda: real.get(place).status_code == 200)
    for side in (real, emulated):
        side.request("POST", f"{place}/serviceaccounts", json={"metadata": {"name": "default"}})
        # What limits pods is made where none are.
        side.request("POST", "/api/v1/namespaces", json={"metadata": {"name": "limited"}}).raise_for_status()
        definition = merged(RAYS, {})
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = RAY
        made = side.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=definition)
        assert made.status_code == 201, made.text
    rays = "/apis/ray.example.com/v1/namespaces/default/rays"
    wait_for(lambda: real.get(rays).status_code == 200)
    return Both(real, emulated)


def told(answer: httpx.Response) -> str:
    """What a refusal says; "" of what was taken."""
    if answer.status_code < 400:
        return ""
    try:
        return str(answer.json().get("message"))
    except ValueError:
        return answer.text


def test_requests_when_sent_to_both_then_the_same_status_but_for_what_is_named(both: Both) -> None:
    send(both)

    answers = both.answers
    refused = [name for name, (theirs, _) in answers.items() if theirs.status_code >= 400]
    different = {
        name: f"{theirs.status_code} {told(theirs)[:200]!r} -- {ours.status_code} {told(ours)[:200]!r}"
        for name, (theirs, ours) in answers.items()
        if theirs.status_code != ours.status_code
    }
    reworded = {
        name: (told(theirs), told(ours))
        for name, (theirs, ours) in answers.items()
        if name not in different and told(theirs) != told(ours)
    }
    groups = Counter(name.partition(":")[0] for name in answers)
    tell(
        f"{len(answers)} requests, {len(refused)} refused, {len(different)} differ in status, {len(reworded)} in words",
        *(f"{group}: {count}" for group, count in groups.items()),
        *(f"{name}: {line}" for name, line in different.items()),
        *(f"{name}\n  {theirs}\n  {ours}" for name, (theirs, ours) in reworded.items()),
    )
    assert min(groups.values()) >= 30
    assert len(answers) >= 300
    assert len(refused) >= len(answers) / 2
    assert different.keys() == DIFFERENT.keys() & answers.keys()
    assert len(different) <= MOST_DIFFERENT * len(answers)


def tell(*lines: str) -> None:
    """Say it where -rP shows it."""
    sys.stdout.write("\n".join((*lines, "")))


# kubectl


@pytest.fixture(scope="module")
def kubeconfigs(real: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Files for both: the real one's without checking its certificate."""
    real.post("/api/v1/namespaces/default/serviceaccounts", json={"metadata": {"name": "default"}})
    directory = tmp_path_factory.mktemp("kubectl")
    theirs, ours = directory / "real", directory / "emulated"
    theirs.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {"name": "c", "cluster": {"server": str(real.base_url), "insecure-skip-tls-verify": True}}
                ],
                "users": [{"name": "u", "user": {"token": TOKEN}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    cluster = KubeCluster("twin", ScaledClock(1.0), TOKEN, "1.36.2")
    with serve(cluster, make_app(cluster), directory) as served:
        ours.write_text(served.kubeconfig())
        yield theirs, ours


def kubectl(kubeconfig: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run kubectl on one of the two."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(kubeconfig.parent), "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(
        ["kubectl", *words], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


@pytest.mark.clients("kubectl")
def test_commands_when_given_to_both_then_they_end_alike_and_none_panics(kubeconfigs: tuple[Path, Path]) -> None:
    different, panics, refused, lines = {}, [], 0, (HERE / "commands.txt").read_text("utf-8").splitlines()
    for line in lines:
        theirs, ours = (kubectl(one, split(line)) for one in kubeconfigs)
        refused += theirs.returncode != 0
        panics += [line] if "panic:" in ours.stderr else []
        if (theirs.returncode != 0) != (ours.returncode != 0):
            different[line] = (
                f"{theirs.returncode} {theirs.stderr[-200:]!r} -- {ours.returncode} {ours.stderr[-200:]!r}"
            )
    tell(
        f"{len(lines)} commands, {refused} refused, {len(different)} end otherwise",
        *(f"{line}: {how}" for line, how in different.items()),
    )
    assert not panics
    assert different.keys() == DIFFERENT.keys() & set(lines)


def split(line: str) -> list[str]:
    """Take a command apart: words in which a blank is meant are the selectors, which come last."""
    head, selector, rest = line.partition(" -l ")
    return [*shlex.split(head, posix=False), *(["-l", rest] if selector else [])]
