"""Nimbus meets the contract of a provider."""

from __future__ import annotations

import inspect
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

from gpukube.core.resolve import resolve_targets
from gpukube.core.values import Nodes, Settings
from gpukube.provider import load_provider
from gpukube.spec.loading.load import load_specs
from gpukube.testing.contract import Fault, Harness, ProviderContract
from gpukube_nimbus.api import NimbusApi, NimbusError
from gpukube_nimbus.client import NimbusCloud

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpukube.core.values import Request, Target
    from gpukube.provider import Cloud

SPEC = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml-platform}
clusters: {train: {provider: nimbus, site: valley-1, name: train}}
pools:
  - {name: plain, clusters: [train], gpu: {model: A100-40GB, count: 8}, nodes: {count: 1}}
  - name: mig
    clusters: [train]
    gpu: {model: A100-40GB, count: 8}
    nodes: {count: 1}
    sharing: {mig: {profile: 1g.5gb, strategy: single}}
  - {name: autoscaled, clusters: [train], instanceType: nb.l4.1, nodes: {autoscaling: {min: 1, max: 3}}}
"""
AT = {"site": "valley-1", "cluster": "train"}


class DisturbedApi(NimbusApi):
    """Fails the next creation."""

    fault: Fault | None = None

    def create_pool(self, site: str, cluster: str, body: dict[str, Any]) -> dict[str, Any]:
        fault, self.fault = self.fault, None
        if fault in ("throttle", "drop-before"):
            raise NimbusError("lost", "no answer")
        if fault in ("capacity", "permission", "busy"):
            raise NimbusError("forbidden" if fault == "permission" else str(fault), "not now")
        done = super().create_pool(site, cluster, body)
        if fault == "quota":
            self.edit(body["name"], error="quota")
        if fault == "drop-after":
            raise NimbusError("lost", "no answer")
        return done

    def edit(self, pool: str, **parts: object) -> None:
        """Change a pool outside gpukube."""
        world = json.loads(self._file.read_text("utf-8"))
        world["valley-1/train"]["pools"][pool].update(parts)
        self._write(world)

    def read(self, pool: str) -> dict[str, Any]:
        return cast("dict[str, Any]", self.list_pools(**AT)[pool])


class NimbusHarness:
    """Nimbus, and ways to disturb it."""

    package = "gpukube_nimbus"
    sdk = ""

    def __init__(self, file: Path) -> None:
        self.provider = load_provider("nimbus")
        (loaded,) = load_specs(["-"], stdin=io.StringIO(SPEC), environ={})
        targets, problems = resolve_targets(loaded)
        assert not problems
        self.targets = {target.pool: target for target in targets}
        self._api = DisturbedApi(str(file))
        self.cloud: Cloud = NimbusCloud(targets[0].cluster, self._api)

    def target(self, kind: Literal["plain", "mig", "autoscaled"]) -> Target:
        return self.targets[kind]

    def add_foreign_pool(self, name: str) -> None:
        body = {"name": name, "machine": "nb.l4.1", "size": 1, "labels": {}, "taints": [], "tags": {}}
        self._api.create_pool(**AT, body=body)

    def move_count(self, name: str) -> None:
        self._api.edit(name, nodes=3)

    def inject(self, fault: Fault, pool: str) -> None:
        del pool
        self._api.fault = fault

    def edits(self) -> dict[str, Target]:
        plain = self.target("plain")
        return {
            "label": replace(plain, labels={"tier": "gold"}),
            "taints": replace(plain, taints=()),
            "size": replace(plain, nodes=Nodes(2, 2, 2, autoscaled=False)),
            "several": replace(plain, tags={"cost": "1"}, nodes=Nodes(1, 0, 5, autoscaled=True)),
        }

    def replace_labels(self, name: str, labels: Mapping[str, str]) -> None:
        self._api.edit(name, labels=dict(labels))

    def without_copy(self, request: Request) -> Request:
        body = cast("Mapping[str, Any]", request.params["body"])
        return replace(request, params={**request.params, "body": {**body, "tags": {}}})

    def clone(self, name: str, to: str) -> None:
        live = self._api.read(name)
        self.add_foreign_pool(to)
        self._api.edit(to, tags=live["tags"], machine=live["machine"], taints=live["taints"], state="ACTIVE")

    def add_tag(self, name: str, key: str, value: str) -> None:
        self._api.edit(name, tags={**self._api.read(name)["tags"], key: value})

    def touch(self, name: str) -> str:
        live = self._api.read(name)
        labels = {**live["labels"], "touched": str(live["version"])}
        self._api.edit(name, labels=labels, version=live["version"] + 1)
        return "touched"

    def accepts(self, request: Request) -> bool:
        inspect.signature(getattr(self._api, request.operation)).bind(**request.params)
        return True

    def pause(self) -> None:
        """Do nothing: time passes only when a pool is read."""


class TestNimbus(ProviderContract):
    @pytest.fixture
    def harness(self, file: Path) -> Harness:
        return NimbusHarness(file)


def test_connect_when_asked_then_the_cloud_of_the_endpoint(file: Path) -> None:
    cluster = NimbusHarness(file).target("plain").cluster
    cloud = load_provider("nimbus").connect(cluster, Settings(endpoints={"nimbus": str(file)}))
    assert (cloud.identify().location, cloud.pools()) == ("valley-1", ())
