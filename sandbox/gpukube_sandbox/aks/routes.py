"""ARM over HTTP: maps paths, queries, headers, and bodies to calls of the service, and results to responses.

In scope: the HTTP side of Microsoft.ContainerService. Out of scope: rules and state.

ARM compares path segments case-insensitively, so paths are parsed here instead of by a router.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from gpukube_sandbox.aks.answers import ArmError, arm_error
from gpukube_sandbox.aks.identity import check_authorization
from gpukube_sandbox.aks.market import resource_skus, retail_prices
from gpukube_sandbox.aks.offers import locations, require_location, upgrade_profile, versions
from gpukube_sandbox.aks.preconditions import Preconditions
from gpukube_sandbox.aks.scores import VERSIONS
from gpukube_sandbox.aks.service import Answer
from gpukube_sandbox.aks.versions import require_api_version
from gpukube_sandbox.pages import WrongToken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import Receive, Scope, Send

    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.aks.clusters import Cluster
    from gpukube_sandbox.aks.service import AksService

_PROVIDER = "microsoft.containerservice"
_LOCATION = "eastus"
_RETAIL = "/api/retail/prices"
_ROOTS = (["subscriptions"], ["providers"], ["tenants"])
"""First segments of ARM's paths."""


@dataclass(frozen=True, slots=True)
class Call:
    """A parsed request.

    Attributes:
        parts: Path segments that are names, in order.
        page: Token of the page; "" for the first.
        query: The whole query, for calls with filters.
    """

    method: str
    parts: tuple[str, ...]
    body: object
    api_version: str
    preconditions: Preconditions
    page: str = ""
    query: Mapping[str, str] = field(default_factory=dict)


class ArmApp:
    """The ASGI application of the emulated ARM.

    Args:
        service: Handles the calls.
        secret: Secret that requests must have.
    """

    def __init__(self, service: AksService, secret: str) -> None:
        self._service = service
        self._secret = secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        request = Request(scope, receive)
        response = await self._respond(request)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        base = f"{request.url.scheme}://{request.url.netloc}"
        if request.url.path == _RETAIL:  # another service, which needs no account
            return _reply(200, retail_prices(request.query_params, f"{base}{_RETAIL}"), {})
        try:
            check_authorization(request.headers.get("authorization"), self._secret)
            call = await _read(request)
            answer = _dispatch(self._service, call)
        except ArmError as error:
            return _reply(error.status, error.body(), error.headers)
        return self._render(answer, base, request)

    def _render(self, answer: Answer, base: str, request: Request) -> Response:
        headers: dict[str, str] = {}
        if answer.operation is not None:
            headers = _poll_after(self._service)
            headers["Azure-AsyncOperation"] = answer.operation.address(base, "operations")
            if request.method != "PUT":
                headers["Location"] = answer.operation.address(base, "operationresults")
        elif answer.polls_again:
            headers = _poll_after(self._service)
        body = answer.body
        if answer.next_page and isinstance(body, dict):
            version = request.query_params.get("api-version", "")
            link = f"{base}{request.url.path}?api-version={version}&$skiptoken={answer.next_page}"
            body = {**body, "nextLink": link}
        return _reply(answer.status, body, headers)


def _poll_after(service: AksService) -> dict[str, str]:
    """Return the header with the next poll's time, in wall clock time.

    Retry-After is in whole seconds (the SDK reads it as an integer from the first response). Below one second, when the
    sandbox's time runs fast, azure-core's own header in milliseconds replaces it.
    """
    wait_s = service.poll_after_s / service.clock.speed
    return (
        {"Retry-After": str(round(wait_s))}
        if wait_s >= 1
        else {"x-ms-retry-after-ms": str(max(10, round(wait_s * 1000)))}
    )


async def _read(request: Request) -> Call:
    raw = await request.body()
    body: object = None
    if raw:
        try:
            body = json.loads(raw)
        except ValueError:
            message = "The request content was invalid and could not be deserialized."
            raise arm_error(400, "InvalidRequestContent", message) from None
    preconditions = Preconditions(request.headers.get("if-match"), request.headers.get("if-none-match"))
    parts = tuple(part for part in request.url.path.split("/") if part)
    version = request.query_params.get("api-version", "")
    page = request.query_params.get("$skiptoken", "")
    return Call(request.method, parts, body, version, preconditions, page, dict(request.query_params))


def _reply(status: int, body: object, headers: dict[str, str]) -> Response:
    identity = str(uuid.uuid4())
    common = {"x-ms-request-id": identity, "x-ms-correlation-request-id": identity, "Cache-Control": "no-cache"}
    content = b"" if body is None else json.dumps(body).encode()
    return Response(content, status, {**common, **headers}, media_type="application/json" if body is not None else None)


def _dispatch(service: AksService, call: Call) -> Answer:
    names = [part.lower() for part in call.parts]
    if names[:1] not in _ROOTS:
        message = f"No HTTP resource was found that matches the request URI '/{'/'.join(call.parts)}'."
        raise arm_error(404, "InvalidResourceType", message)
    match names:
        case ["subscriptions"]:
            _require_any_version(call)
            return Answer(200, {"value": [_subscription(s) for s in _subscriptions(service)]})
        case ["subscriptions", _]:
            _require_any_version(call)
            service.require_subscription(_subscription_id(call.parts[1]))
            return Answer(200, _subscription(call.parts[1]))
        case ["subscriptions", _, "locations"] if call.method == "GET":
            _require_any_version(call)
            service.require_subscription(_subscription_id(call.parts[1]))
            return Answer(200, locations(call.parts[1]))
        case ["subscriptions", _, "resourcegroups"] if call.method == "GET":
            _require_any_version(call)
            service.require_subscription(_subscription_id(call.parts[1]))
            return Answer(200, {"value": _groups(service, call.parts[1])})
        case ["subscriptions", _, "resourcegroups", _] if call.method == "GET":
            _require_any_version(call)
            service.require_group(_subscription_id(call.parts[1]), call.parts[3])
            return Answer(200, _group(call.parts[1], call.parts[3]))
        case ["subscriptions", _, "providers", *_]:
            return _in_subscription(service, call, names[3:])
        case ["subscriptions", _, "resourcegroups", _, "providers", provider, "managedclusters", *_] if (
            provider == _PROVIDER
        ):
            return _on_clusters(service, call, names[7:])
        case [
            "subscriptions", _, "resourcegroups", _, "providers", "microsoft.compute", "capacityreservationgroups", *_
        ] if call.method == "GET":  # fmt: skip
            return _on_groups(service, call, names[7:])
        case _:
            _require_any_version(call)
            raise _not_emulated(call)


def _in_subscription(service: AksService, call: Call, rest: list[str]) -> Answer:
    subscription = _subscription_id(call.parts[1])
    match rest, call.method:
        case ["microsoft.compute", "skus"], "GET":
            _require_any_version(call)
            return Answer(200, resource_skus(call.query, subscription, service.restrictions))
        case ["microsoft.compute", "locations", _, "placementscores", "spot", "generate"], "POST":
            _require_score_version(call.api_version)
            service.require_subscription(subscription)
            return service.scores(subscription, call.body)
        case ["microsoft.compute", "locations", _, "skumixplacementscores", *_], _:  # a preview that nobody here has
            _require_any_version(call)
            message = (
                "The resource type 'locations/skuMixPlacementScores' could not be found in the namespace "
                f"'Microsoft.Compute' for api version '{call.api_version}'."
            )
            raise arm_error(404, "InvalidResourceType", message)
        case ["microsoft.compute", "capacityreservationgroups"], "GET":
            _require_any_version(call)
            service.require_subscription(subscription)
            return Answer(200, service.groups.list_below(f"/subscriptions/{subscription}", call.api_version))
        case ["microsoft.compute", "locations", location, "usages"], "GET":
            _require_any_version(call)
            require_location(location, call.api_version, "locations/usages")
            service.require_subscription(subscription)
            return Answer(200, service.quotas.usages(subscription, location))
        case ["microsoft.containerservice", "locations", location, "kubernetesversions"], "GET":
            resource_type = "locations/kubernetesVersions"
            require_api_version(call.api_version, resource_type, location)
            require_location(location, call.api_version, resource_type)
            return Answer(200, versions(service.in_group(subscription)))
        case ["microsoft.containerservice", "managedclusters"], "GET":
            require_api_version(call.api_version, "managedClusters", _LOCATION)
            service.throttle.take("list-clusters", subscription.lower())
            return service.list_clusters(subscription)
        case ["microsoft.containerservice", "locations", _, "operations", identity], "GET":
            _require_any_version(call)
            service.throttle.take("get-operation", subscription.lower())
            return service.get_operation(identity)
        case ["microsoft.containerservice", "locations", _, "operationresults", identity], "GET":
            _require_any_version(call)
            service.throttle.take("get-operation", subscription.lower())
            return service.get_operation_result(identity)
        case _:
            _require_any_version(call)
            raise _not_emulated(call)


def _on_groups(service: AksService, call: Call, rest: list[str]) -> Answer:
    """Return capacity reservation groups, or reservations of one."""
    _require_any_version(call)
    _subscription_id(call.parts[1])
    expand, groups, version = call.query.get("$expand", ""), service.groups, call.api_version
    if not rest:
        return Answer(200, groups.list_below(f"/{'/'.join(call.parts[:4])}", version))
    group = groups.require(f"/{'/'.join(call.parts[:8])}")
    match rest:
        case [_]:
            return Answer(200, groups.group(group, version, expand))
        case [_, "capacityreservations"]:
            return Answer(200, groups.reservations(group, version))
        case [_, "capacityreservations", name]:
            return Answer(200, groups.reservation(group, name, version, expand))
        case _:
            raise _not_emulated(call)


def _on_clusters(service: AksService, call: Call, rest: list[str]) -> Answer:
    subscription, group = _subscription_id(call.parts[1]), call.parts[3]
    resource_type = "managedClusters" if len(rest) <= 1 else f"managedClusters/{call.parts[8]}"
    require_api_version(call.api_version, resource_type, _LOCATION)
    if not rest:
        service.throttle.take("list-clusters-in-group", f"{subscription}/{group}".lower())
        return service.list_clusters(subscription, group)
    cluster = service.require_cluster(subscription, group, call.parts[7])
    api = "/".join(("*" if at == 1 else part) for at, part in enumerate(rest[1:]))
    handler = _CALLS.get((call.method, api))
    if handler is None:
        raise _not_emulated(call)
    _take_token(service, cluster, call, api)
    return handler(service, cluster, call)


def _take_token(service: AksService, cluster: Cluster, call: Call, api: str) -> None:
    match call.method, api:
        case "PUT", "agentpools/*":
            service.throttle.take("put-agent-pool", f"{cluster.id}/{call.parts[9]}".lower())
        case "GET", "":
            service.throttle.take("get-cluster", cluster.id.lower())
        case _:  # "all other APIs" share a limit per subscription; counting per API is our interpretation
            service.throttle.take("other", f"{cluster.subscription}/{call.method}/{api}".lower())


def _list_pools(service: AksService, cluster: Cluster, call: Call) -> Answer:
    try:
        return service.list_pools(cluster, call.page)
    except WrongToken as error:  # the code is unconfirmed
        raise arm_error(400, "InvalidSkipToken", "The skip token is invalid.") from error


def _put_pool(service: AksService, cluster: Cluster, call: Call) -> Answer:
    return service.put_pool(cluster, call.parts[9], call.body, call.api_version, call.preconditions)


_CALLS: dict[tuple[str, str], Callable[[AksService, Cluster, Call], Answer]] = {
    ("GET", ""): lambda service, cluster, _: Answer(200, cluster.wire(service.clock.now())),
    ("PUT", ""): lambda service, cluster, call: service.put_cluster(cluster, call.body),
    ("GET", "upgradeprofiles/*"): lambda service, cluster, _: Answer(
        200, upgrade_profile(cluster, service.in_group(cluster.subscription))
    ),
    ("GET", "agentpools"): _list_pools,
    ("GET", "agentpools/*"): lambda service, cluster, call: service.get_pool(cluster, call.parts[9]),
    ("PUT", "agentpools/*"): _put_pool,
    ("DELETE", "agentpools/*"): lambda service, cluster, call: service.delete_pool(
        cluster, call.parts[9], call.preconditions
    ),
    ("POST", "agentpools/*/abort"): lambda service, cluster, call: service.abort_pool(cluster, call.parts[9]),
    ("POST", "agentpools/*/upgradenodeimageversion"): lambda service, cluster, call: service.upgrade_image(
        cluster, call.parts[9]
    ),
    ("GET", "agentpools/*/upgradeprofiles/default"): lambda service, cluster, call: service.upgrade_profile(
        cluster, call.parts[9]
    ),
    ("GET", "availableagentpoolversions"): lambda service, cluster, _: service.available_versions(cluster),
    ("POST", "listclusterusercredential"): lambda _, cluster, __: Answer(200, cluster.credential(admin=False)),
    ("POST", "listclusteradmincredential"): lambda _, cluster, __: Answer(200, cluster.credential(admin=True)),
}
"""Method and path below a cluster, with `*` for names -> handler."""


def _subscription_id(subscription: str) -> str:
    """Return a subscription id; reject a malformed one, as ARM does."""
    try:
        uuid.UUID(subscription)
    except ValueError:
        message = f"The provided subscription identifier '{subscription}' is malformed or invalid."
        raise arm_error(400, "InvalidSubscriptionId", message) from None
    return subscription


def _require_score_version(version: str) -> None:
    if version.lower() not in VERSIONS:
        message = (
            f"No registered resource provider found for location '{_LOCATION}' and API version '{version}' for type "
            f"'locations/placementScores'. The supported api-versions are '{', '.join(VERSIONS)}'."
        )
        raise arm_error(400, "NoRegisteredProviderFound", message)


def _require_any_version(call: Call) -> None:
    if not call.api_version:
        require_api_version(None, "", _LOCATION)


def _subscriptions(service: AksService) -> list[str]:
    return sorted({cluster.subscription for cluster in service.clusters.values()})


def _subscription(identity: str) -> Json:
    return {
        "id": f"/subscriptions/{identity}",
        "subscriptionId": identity,
        "tenantId": "00000000-0000-0000-0000-0000000000aa",
        "displayName": f"sandbox {identity[:8]}",
        "state": "Enabled",
        "subscriptionPolicies": {"spendingLimit": "Off"},
    }


def _groups(service: AksService, subscription: str) -> list[Json]:
    names = {c.group for c in service.clusters.values() if c.subscription.lower() == subscription.lower()}
    return [_group(subscription, name) for name in sorted(names)]


def _group(subscription: str, name: str) -> Json:
    return {
        "id": f"/subscriptions/{subscription}/resourceGroups/{name}",
        "name": name,
        "type": "Microsoft.Resources/resourceGroups",
        "location": _LOCATION,
        "properties": {"provisioningState": "Succeeded"},
    }


def _not_emulated(call: Call) -> ArmError:
    """Return an error for a call that the real service has but the sandbox does not, instead of a made-up response."""
    message = f"The gpukube sandbox does not emulate {call.method} /{'/'.join(call.parts)}."
    return arm_error(501, "NotEmulated", message)
