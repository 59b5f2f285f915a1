"""The live half: calls of Nimbus's API, and its refusals as our errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.core.values import ClusterFacts, KubeAccess, Operation, Progress
from gpukube.errors import AccessError, Busy, CapacityError, CloudError, Conflict, Moved, QuotaError
from gpukube.provider import CloudExtras
from gpukube_nimbus.api import NimbusApi, NimbusError
from gpukube_nimbus.pool import STATES, observe_pool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import ClusterRef, Observed, Request, Settings
    from gpukube.errors import GpukubeError
    from gpukube.provider import Cloud

_MEANINGS: Final[Mapping[str, tuple[type[GpukubeError], str]]] = {
    "not-found": (CloudError, "check site and name of the cluster"),
    "exists": (Conflict, "run it again: what is there is observed first"),
    "busy": (Busy, "wait, and run it again"),
    "moved": (Moved, "run it again"),
    "forbidden": (AccessError, "ask for the role pool-admin"),
    "quota": (QuotaError, "ask for more GPUs at the site"),
    "capacity": (CapacityError, "choose another site"),
}
"""Code of the API -> our class and what to do: gpukube acts by the class."""


def connect_cluster(cluster: ClusterRef, settings: Settings) -> Cloud:
    """Connect to one cluster; the endpoint is the file that the cloud is kept in."""
    return NimbusCloud(cluster, NimbusApi(settings.endpoints.get("nimbus", "nimbus.json")))


class NimbusCloud(CloudExtras):
    """One cluster of Nimbus."""

    def __init__(self, cluster: ClusterRef, api: NimbusApi) -> None:
        self._cluster = cluster
        self._api = api
        self._at = {"site": cluster.identity["site"], "cluster": cluster.name}

    def identify(self) -> ClusterFacts:
        """Check that the cluster is there."""
        found = self._call("get_cluster")
        return ClusterFacts(self._at["site"], str(found["version"]), ready=True, status="ACTIVE")

    def pools(self) -> tuple[Observed, ...]:
        """List all pools."""
        return tuple(observe_pool(self._cluster, body) for body in self._call("list_pools").values())

    def pool(self, name: str) -> Observed | None:
        """Read one pool."""
        body = self._call("list_pools").get(name)
        return observe_pool(self._cluster, body) if body else None

    def send(self, request: Request) -> Operation:
        """Start a change. Deleting a pool that is gone is done at once."""
        params = {key: value for key, value in request.params.items() if key not in self._at}
        self._call(request.operation, **params)
        body = params.get("body")
        name = body["name"] if isinstance(body, dict) else params["name"]
        verb = request.operation.removesuffix("_pool")
        return Operation(str(name), verb)  # type: ignore[arg-type]  # create, update or delete, as our requests are

    def poll(self, operation: Operation) -> Progress:
        """Look once."""
        body = self._call("look_at_pool", name=operation.pool)
        if not body:
            return Progress(done=operation.verb == "delete", status="gone")
        state, status = STATES.get(str(body["state"]), "busy"), str(body["state"])
        if state == "failed":
            return Progress(done=False, status=status, error=_explain(NimbusError(str(body["error"]), "it failed")))
        return Progress(done=state == "ready" and operation.verb != "delete", status=status, retry_after_s=0.0)

    def kube_access(self) -> KubeAccess:
        """Make a kubeconfig."""
        server = str(self._call("get_cluster")["kubernetes"])
        named = {"name": "nimbus"}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{**named, "cluster": {"server": server}}],
            "users": [{**named, "user": {"token": "nimbus"}}],
            "contexts": [{**named, "context": {"cluster": "nimbus", "user": "nimbus"}}],
            "current-context": "nimbus",
        }
        return KubeAccess(json.dumps(document))

    def close(self) -> None:
        """Nothing is open."""

    def _call(self, operation: str, **params: object) -> dict[str, dict[str, object]]:
        try:
            answer: dict[str, dict[str, object]] = getattr(self._api, operation)(**self._at, **params)
        except NimbusError as error:
            raise _explain(error) from error
        except (OSError, ValueError) as error:
            raise CloudError(f"Nimbus did not answer: {error}", fix="check GPUKUBE_NIMBUS_ENDPOINT") from error
        return answer


def _explain(error: NimbusError) -> GpukubeError:
    kind, fix = _MEANINGS.get(error.code, (CloudError, "run it again"))
    return kind(str(error), fix=fix)
