"""IAM permissions that each Google Cloud call needs, and the errors if they are missing.

In scope: the map from call to permission, and the messages. Out of scope: which permissions are denied (`permits`).
Needs no Google library.

Sources: docs: kubernetes-engine/docs/reference/api-permissions (GKE), compute/docs/reference/rest/v1 ("IAM Permissions"
of regions, projects.get, zones, machineTypes, acceleratorTypes, reservations and advice), iam/docs/roles-permissions
(cloudquotas, monitoring).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from gpukube_sandbox.gke.market import INFO, PROJECT, REGION, REGION_LIST, SERIES
from gpukube_sandbox.gke.wire.answers import GoogleError, Json, bad
from gpukube_sandbox.permits import Need

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.responses import Response
    from starlette.types import Scope

_CALLS: dict[str, str] = {
    "ListClusters": "container.clusters.list",
    "GetCluster": "container.clusters.get",
    "UpdateCluster": "container.clusters.update",
    "ListNodePools": "container.clusters.get",
    "GetNodePool": "container.clusters.get",
    "CreateNodePool": "container.clusters.update",
    "UpdateNodePool": "container.clusters.update",
    "DeleteNodePool": "container.clusters.update",
    "SetNodePoolSize": "container.clusters.update",
    "SetNodePoolAutoscaling": "container.clusters.update",
    "SetNodePoolManagement": "container.clusters.update",
    "GetOperation": "container.operations.get",
    "ListOperations": "container.operations.list",
}
"""Call of ClusterManager -> permission. Node pools have no permissions of their own. CancelOperation and
GetServerConfig are not in the reference; gpukube calls neither."""
_ACT_AS = "iam.serviceAccounts.actAs"
_PLACES: tuple[tuple[re.Pattern[str], str], ...] = (
    (REGION, "compute.regions.get"),
    (REGION_LIST, "compute.regions.list"),
    (PROJECT, "compute.projects.get"),
    (re.compile(r"/compute/v1/projects/[^/]+/regions/[^/]+/advice/capacity"), "compute.advice.capacity"),
    (re.compile(r"/compute/v1/projects/[^/]+/regions/[^/]+/advice/capacityHistory"), "compute.advice.capacityHistory"),
    (re.compile(r"/compute/v1/projects/[^/]+/regions/[^/]+/advice/calendarMode"), "compute.advice.calendarMode"),
    (INFO, "cloudquotas.quotas.get"),
    (SERIES, "monitoring.timeSeries.list"),
    (re.compile(r"/compute/v1/projects/[^/]+/(?:aggregated|zones/[^/]+)/machineTypes"), "compute.machineTypes.list"),
    (
        re.compile(r"/compute/v1/projects/[^/]+/(?:aggregated|zones/[^/]+)/acceleratorTypes"),
        "compute.acceleratorTypes.list",
    ),
    (re.compile(r"/compute/v1/projects/[^/]+/zones/[^/]+/machineTypes/[^/]+"), "compute.machineTypes.get"),
    (re.compile(r"/compute/v1/projects/[^/]+/zones/[^/]+/acceleratorTypes/[^/]+"), "compute.acceleratorTypes.get"),
    (re.compile(r"/compute/v1/projects/[^/]+/(?:aggregated|zones/[^/]+)/reservations"), "compute.reservations.list"),
    (re.compile(r"/compute/v1/projects/[^/]+/zones/[^/]+/reservations/[^/]+"), "compute.reservations.get"),
    (re.compile(r"/compute/v1/projects/[^/]+/zones"), "compute.zones.list"),
    (re.compile(r"/compute/v1/projects/[^/]+/zones/[^/]+"), "compute.zones.get"),
)
"""Path of another API -> permission. The Cloud Billing Catalog is public."""
KNOWN = frozenset({*_CALLS.values(), _ACT_AS, *(permission for _, permission in _PLACES)})
"""All permissions that calls of the emulated Google Cloud need."""
_CLUSTER = re.compile(r"(projects/[^/]+/(?:locations|zones)/[^/]+/clusters/[^/:]+).*")


def needs(scope: Scope, body: bytes) -> list[Need]:
    """List what a REST request needs, the permission for the call itself first."""
    path = scope["path"]
    for pattern, permission in _PLACES:
        if pattern.fullmatch(path):
            return [Need(permission, path.removeprefix("/compute/v1/").lstrip("/"))]
    if not path.startswith("/v1/projects/"):
        return []
    try:
        from gpukube_sandbox.gke.wire.calls import find_call  # noqa: PLC0415 - loads google-cloud-container

        call, name = find_call(scope["method"], path)
    except (ImportError, GoogleError):
        return []
    return list(_of_call(call.name, name, _account_in(body)))


def needs_of_call(name: str, place: str, account: str) -> list[Need]:
    """List what a gRPC call needs, from its name, its resource, and the service account of a new pool."""
    return list(_of_call(name, place, account))


def _of_call(call: str, name: str, account: str) -> Iterator[Need]:
    permission = _CALLS.get(call)
    if permission is None:
        return
    found = _CLUSTER.fullmatch(name)
    place = found[1] if found else name.partition("/locations/")[0]  # jenkinsci/google-kubernetes-engine-plugin#95
    yield Need(permission, place)
    if call == "CreateNodePool":
        # docs: iam/docs/service-account-permissions; the default account is one, too
        yield Need(_ACT_AS, account or "default", permission, place)


def _account_in(body: bytes) -> str:
    try:
        sent = json.loads(body or b"{}")
    except ValueError:
        return ""
    found: object = sent
    for key in ("nodePool", "config", "serviceAccount"):
        found = found.get(key) if isinstance(found, dict) else None
    return str(found or "")


def answer(need: Need, scope: Scope) -> Response:
    """Return the REST response to a call without the permission."""
    del scope
    found = permission_error(need)
    return JSONResponse(found.body(), found.status)


def permission_error(need: Need) -> GoogleError:
    """Return the error of a missing permission in the words of the called API.

    Sources: terraform-google-modules/terraform-google-kubernetes-engine#926 (GKE),
    terraform-google-modules/terraform-google-vault#206 (Compute Engine),
    GoogleCloudPlatform/cloud-foundation-fabric (service accounts), 2i2c-org/infrastructure#488 (newer APIs, with the
    permission in their details).
    """
    if need.permission == _ACT_AS:
        return bad(
            f'The user does not have access to service account "{need.resource}". Ask a project owner to grant you the '
            "iam.serviceAccountUser role on the service account."
        )
    if need.permission.startswith("container."):
        return GoogleError("PERMISSION_DENIED", f'Required "{need.permission}" permission(s) for "{need.resource}".')
    if need.permission.startswith("compute."):
        return GoogleError("PERMISSION_DENIED", f"Required '{need.permission}' permission for '{need.resource}'")
    if need.permission.startswith("monitoring."):
        message = f"Permission {need.permission} denied (or the resource may not exist)."
        return GoogleError("PERMISSION_DENIED", message)
    resource = f"//{need.permission.partition('.')[0]}.googleapis.com/{need.resource.removeprefix('v1/')}"
    details: Json = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "IAM_PERMISSION_DENIED",
        "domain": f"{need.permission.partition('.')[0]}.googleapis.com",
        "metadata": {"permission": need.permission, "resource": resource.rpartition(".com/")[2]},
    }
    message = f"Permission '{need.permission}' denied on resource '{resource}' (or it may not exist)."
    return GoogleError("PERMISSION_DENIED", message, [details])
