"""The live half: calls to Nimbus's API, and its errors as gpukube's."""

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
    "exists": (Conflict, "run the same command again: it reads the live state first"),
    "busy": (Busy, "wait, then run the same command again"),
    "moved": (Moved, "run the same command again"),
    "forbidden": (AccessError, "request the role pool-admin"),
    "quota": (QuotaError, "request more GPUs at the site"),
    "capacity": (CapacityError, "choose another site"),
}
"""API error code -> gpukube's error class, which decides how gpukube reacts, and what to do."""


def connect_cluster(cluster: ClusterRef, settings: Settings) -> Cloud:
    """Connect to one cluster; the endpoint is the file that stores the cloud."""
    return NimbusCloud(cluster, NimbusApi(settings.endpoints.get("nimbus", "nimbus.json")))


class NimbusCloud(CloudExtras):
    """One cluster of Nimbus."""

    def __init__(self, cluster: ClusterRef, api: NimbusApi) -> None:
        self._cluster = cluster
        self._api = api
        self._at = {"site": cluster.identity["site"], "cluster": cluster.name}

    def identify(self) -> ClusterFacts:
        """Check that the cluster exists."""
        found = self._call("get_cluster")
        return ClusterFacts(self._at["site"], str(found["version"]), ready=True, status="ACTIVE")

    def pools(self) -> tuple[Observed, ...]:
        """Return all pools."""
        return tuple(observe_pool(self._cluster, body) for body in self._call("list_pools").values())

    def pool(self, name: str) -> Observed | None:
        """Read one pool."""
        body = self._call("list_pools").get(name)
        return observe_pool(self._cluster, body) if body else None

    def send(self, request: Request) -> Operation:
        """Start a change. Deleting a missing pool completes at once."""
        params = {key: value for key, value in request.params.items() if key not in self._at}
        self._call(request.operation, **params)
        body = params.get("body")
        name = body["name"] if isinstance(body, dict) else params["name"]
        verb = request.operation.removesuffix("_pool")
        return Operation(str(name), verb)  # type: ignore[arg-type]  # create, update, or delete, like all requests of this provider

    def poll(self, operation: Operation) -> Progress:
        """Check once."""
        body = self._call("look_at_pool", name=operation.pool)
        if not body:
            return Progress(done=operation.verb == "delete", status="gone")
        state, status = STATES.get(str(body["state"]), "busy"), str(body["state"])
        if state == "failed":
            return Progress(
                done=False, status=status, error=_explain(NimbusError(str(body["error"]), "the operation failed"))
            )
        return Progress(done=state == "ready" and operation.verb != "delete", status=status, retry_after_s=0.0)

    def kube_access(self) -> KubeAccess:
        """Return a kubeconfig."""
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
        """Do nothing: no connection is open."""

    def _call(self, operation: str, **params: object) -> dict[str, dict[str, object]]:
        try:
            answer: dict[str, dict[str, object]] = getattr(self._api, operation)(**self._at, **params)
        except NimbusError as error:
            raise _explain(error) from error
        except (OSError, ValueError) as error:
            raise CloudError(f"Nimbus did not answer: {error}", fix="check GPUKUBE_NIMBUS_ENDPOINT") from error
        return answer


def _explain(error: NimbusError) -> GpukubeError:
    kind, fix = _MEANINGS.get(error.code, (CloudError, "run the same command again"))
    return kind(str(error), fix=fix)
