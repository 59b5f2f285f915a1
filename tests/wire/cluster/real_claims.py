"""Runs the cases of device claims on a real API server, controller manager and scheduler, pod by pod."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx

from gpukube_sandbox.credentials import new_secret
from gpukube_sandbox.kube.controlplane import ControlPlane, find_assets
from gpukube_sandbox.kube.store.gates import parse_minor
from gpukube_sandbox.kube.store.validation.deviceclaims import ADMIN_ACCESS
from sandbox_tests.serving import hang_up
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from tests.claim_cases import ClaimCase

Json = dict[str, Any]

GROUP: Final = "/apis/resource.k8s.io/v1"
PLURALS: Final = {"ResourceClaim": "resourceclaims", "ResourceClaimTemplate": "resourceclaimtemplates"}
_SETTLES_S: Final = 0.15
"""How long the scheduler's caches may lag behind the API server before a pod is created."""
_STAYS_S: Final = 0.4
"""How long a refusal must stand: a pod may be refused before its claims are there."""
_SILENT_S: Final = 5.0


@dataclass(frozen=True)
class Cluster:
    """What the scheduler has read when a pod comes.

    Attributes:
        nodes: All nodes.
        slices: All ResourceSlices.
        classes: All DeviceClasses.
        claims: All ResourceClaims, with what is allocated.
        templates: All ResourceClaimTemplates.
        pods: Other pods.
    """

    nodes: list[Json]
    slices: list[Json]
    classes: list[Json]
    claims: list[Json]
    templates: list[Json]
    pods: list[Json]


@dataclass(frozen=True)
class Step:
    """What the real scheduler did with one pod.

    Attributes:
        case: The pod's case.
        pod: The pod before it was scheduled, with the names of its claims.
        before: The cluster, with the pod's claims before they were allocated.
        node: The node that the pod got; "" for none.
        message: Why it got none.
        allocations: Claim -> its allocation after the step.
    """

    case: ClaimCase
    pod: Json
    before: Cluster
    node: str
    message: str
    allocations: dict[str, Json]

    @property
    def results(self) -> dict[str, list[Json]]:
        """Claim -> its allocated devices after the step."""
        return {name: found.get("devices", {}).get("results", []) for name, found in self.allocations.items()}

    @property
    def label(self) -> str:
        """Family, case, and pod."""
        return f"{self.case.family}: {self.case.name}: {self.pod['metadata']['name']}"


class RealPlane:
    """A control plane in which cases run one after the other, each in a namespace of its own."""

    def __init__(self, client: httpx.AsyncClient, version: str) -> None:
        self._client = client
        self._number = 0
        self.minor = parse_minor(version)

    async def run(self, case: ClaimCase) -> list[Step]:
        """Create everything of a case, then its pods one by one; remove nodes, slices and pods."""
        self._number += 1
        # Names are new in each case: a claim of the last one may still hold a device of the same name.
        nodes, slices, classes, claims, pods = json.loads(
            json.dumps([case.nodes, case.slices, case.classes, case.claims, case.pods]).replace(
                "node-", f"n{self._number}-"
            )
        )
        space = f"case-{self._number}"
        await self._post("/api/v1/namespaces", {"metadata": {"name": space, "labels": {ADMIN_ACCESS: "true"}}})
        await self._post(f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": "default"}}, again=True)
        for item in nodes:
            await self._post("/api/v1/nodes", item)
        for item in classes:
            await self._post(f"{GROUP}/deviceclasses", item, again=True)
        for item in slices:
            await self._post(f"{GROUP}/resourceslices", item)
        for item in claims:
            await self._post(f"{GROUP}/namespaces/{space}/{PLURALS[item['kind']]}", item)
        await asyncio.sleep(_SETTLES_S)
        found = [await self._step(case, space, item) for item in pods]
        await self._remove([f"/api/v1/namespaces/{space}/pods/{item['metadata']['name']}" for item in pods])
        await self._remove([f"/api/v1/nodes/{item['metadata']['name']}" for item in nodes])
        await self._remove([f"{GROUP}/resourceslices/{item['metadata']['name']}" for item in slices])
        await asyncio.sleep(_SETTLES_S)
        return found

    async def _step(self, case: ClaimCase, space: str, body: Json) -> Step:
        before = await self._read(space)
        made = await self._post(f"/api/v1/namespaces/{space}/pods", body)
        pod = await self._verdict(space, made)
        claims = await self._list(f"{GROUP}/namespaces/{space}/resourceclaims")
        known = {item["metadata"]["name"] for item in before.claims}
        fresh = [{**item, "status": {}} for item in claims if item["metadata"]["name"] not in known]
        conditions = {item["type"]: item for item in pod["status"].get("conditions") or ()}
        node = pod["spec"].pop("nodeName", "")
        return Step(
            case,
            pod,
            Cluster(
                before.nodes,
                before.slices,
                before.classes,
                before.claims + fresh,
                before.templates,
                before.pods,
            ),
            node,
            "" if node else conditions.get("PodScheduled", {}).get("message", ""),
            {item["metadata"]["name"]: _untimed(item["status"].get("allocation") or {}) for item in claims},
        )

    async def _read(self, space: str) -> Cluster:
        return Cluster(
            await self._list("/api/v1/nodes"),
            await self._list(f"{GROUP}/resourceslices"),
            await self._list(f"{GROUP}/deviceclasses"),
            await self._list(f"{GROUP}/namespaces/{space}/resourceclaims"),
            await self._list(f"{GROUP}/namespaces/{space}/resourceclaimtemplates"),
            await self._list(f"/api/v1/namespaces/{space}/pods"),
        )

    async def _list(self, path: str) -> list[Json]:
        answer = await self._client.get(path)
        found: list[Json] = answer.raise_for_status().json()["items"]
        return found

    async def _post(self, path: str, body: Json, *, again: bool = False) -> Json:
        made = await self._client.post(path, json=body)
        assert made.is_success or (again and made.status_code == httpx.codes.CONFLICT), made.text
        found: Json = made.json()
        return found

    async def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            await self._client.delete(path, params={"gracePeriodSeconds": "0"})

    async def _verdict(self, space: str, pod: Json) -> Json:
        """Wait until a pod is bound, or refused and stays so."""
        name, since = pod["metadata"]["name"], pod["metadata"]["resourceVersion"]
        asked = {"watch": "true", "fieldSelector": f"metadata.name={name}", "resourceVersion": since}
        async with self._client.stream("GET", f"/api/v1/namespaces/{space}/pods", params=asked) as answer:
            lines = answer.aiter_lines()
            while True:
                refused = any(
                    item["type"] == "PodScheduled" and item["status"] == "False"
                    for item in pod["status"].get("conditions") or ()
                )
                try:
                    line = await asyncio.wait_for(anext(lines), _STAYS_S if refused else _SILENT_S)
                except TimeoutError:
                    return pod
                pod = json.loads(line)["object"]
                if pod["spec"].get("nodeName"):
                    return pod


def _untimed(allocation: Json) -> Json:
    return {key: value for key, value in allocation.items() if key != "allocationTimestamp"}


@asynccontextmanager
async def real_plane() -> AsyncIterator[RealPlane]:
    """Start a control plane without kubelets: a bound pod is as good as running."""
    assets, token = find_assets(), new_secret()
    assert assets
    plane = ControlPlane(assets, token)
    await plane.start()
    trusted = ssl.create_default_context(cadata=plane.ca_pem)
    try:
        async with httpx.AsyncClient(
            base_url=plane.url,
            headers={"authorization": f"Bearer {token}"},
            verify=trusted,
            trust_env=False,
            timeout=PATIENCE_S,
        ) as client:
            yield RealPlane(client, plane.version)
    finally:
        await plane.stop()
        await hang_up()
