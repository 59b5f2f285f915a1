"""The sandbox's control API: clusters, status, log, faults, stock, out-of-band changes.

In scope: the HTTP of /_sandbox. Out of scope: the services that it controls.

Every call needs the control token from the state file as a bearer token. Responses are JSON; invalid calls get 400 with
`{"error": text}`, and calls that need a library that is not installed get 501.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import re
from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.routing import Route

from gpukube_sandbox.aks import permissions as of_azure
from gpukube_sandbox.aks.clusters import Cluster, ClusterOptions, merged_kubeconfig
from gpukube_sandbox.aks.lifecycle import Pace
from gpukube_sandbox.aks.locations import check_subscription
from gpukube_sandbox.aks.references import ids_in, read_resources, short_id
from gpukube_sandbox.aks.service import cluster_key
from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.eks import permissions as of_aws
from gpukube_sandbox.eks.steering import add_context as add_eks_context
from gpukube_sandbox.eks.steering import cluster_request as eks_request
from gpukube_sandbox.eks.steering import cluster_status as eks_status
from gpukube_sandbox.eks.steering import declare as declare_eks
from gpukube_sandbox.eks.steering import declare_for as declare_eks_for
from gpukube_sandbox.eks.steering import named as named_eks
from gpukube_sandbox.eks.steering import set_pace as set_eks_pace
from gpukube_sandbox.eks.steering import tamper_group
from gpukube_sandbox.eks.wire.answers import AwsError
from gpukube_sandbox.faults import parse_fault
from gpukube_sandbox.gke import permissions as of_google
from gpukube_sandbox.kube.store.rbac import SANDBOX_ADMIN, user_named
from gpukube_sandbox.permits import is_access
from gpukube_sandbox.saving import load_world, save_world
from gpukube_sandbox.shapes import Keys, WrongEntry, check_cluster, check_entry
from gpukube_sandbox.stock import parse_entry
from gpukube_sandbox.tampering import tamper_pool
from gpukube_sandbox.throttle import Limit
from gpukube_sandbox.world import ClusterRequest, World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request

    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.kube.cluster import KubeCluster

_OPTION_NAMES = {
    "disableLocalAccounts": "disable_local_accounts",
    "aad": "aad",
    "nodeProvisioningMode": "node_provisioning_mode",
    "tenant": "tenant",
    "identity": "identity",
    "foreignPlugin": "foreign_plugin",
    "infiniband": "infiniband",
}

_CLOUDS = ("aks", "eks", "gke")
_CLUSTER = Keys(
    {"provider": str, "subscription": str, "resourceGroup": str, "name": str},
    {"kubernetesVersion": str, "location": str, "options": dict},
)
_VERSION = re.compile(r"\d+\.\d+(\.\d+(-gke\.\d+)?)?")
_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9])?")
"""Pattern of resourceName in the specification of Microsoft.ContainerService."""
_OF_NO_ACCOUNT = ("reset", "stop", "save", "load", "permissions")
"""Calls that are not recorded in the origin of a world."""


def known_permissions() -> frozenset[str]:
    """Return all permissions that calls of the emulated clouds can need."""
    return of_azure.KNOWN | of_aws.KNOWN | of_google.KNOWN


def control_routes(
    world: World, token: str, stop: Callable[[], None], keep: Callable[[list[str]], None]
) -> list[Route]:
    """Return the routes of the control API.

    Args:
        world: The sandbox that it controls.
        token: Control token that every call must contain.
        stop: Ends the process after the response.
        keep: Called with the current clusters, such as "eks train", whenever they change.
    """
    control = _Control(world, stop, keep)
    table: tuple[tuple[str, str, Callable[[Request], Awaitable[Json]]], ...] = (
        ("GET", "status", control.status),
        ("POST", "reset", control.reset),
        ("POST", "stop", control.stop),
        ("POST", "settings", control.settings),
        ("POST", "clusters", control.make_cluster),
        ("POST", "things", control.declare),
        ("POST", "upgrade", control.upgrade),
        ("GET", "kubeconfig", control.kubeconfig),
        ("GET", "sysctls", control.sysctls),
        ("GET", "holders", control.holders),
        ("GET", "requests", control.requests),
        ("POST", "faults", control.add_fault),
        ("GET", "faults", control.list_faults),
        ("DELETE", "faults", control.clear_faults),
        ("POST", "stock", control.set_stock),
        ("GET", "stock", control.list_stock),
        ("DELETE", "stock", control.clear_stock),
        ("POST", "tamper", control.tamper),
        ("POST", "deny", control.deny),
        ("GET", "permissions", control.permissions),
        ("POST", "permissions", control.permit),
        ("POST", "user", control.user),
        ("POST", "save", control.save),
        ("POST", "load", control.load),
    )
    return [
        Route(f"/_sandbox/{path}", _guarded(handler, token, world.log.touch, world.origin), methods=[method])
        for method, path, handler in table
    ]


def _guarded(
    handler: Callable[[Request], Awaitable[Json]], token: str, note: Callable[[], None], origin: list[str]
) -> Callable[[Request], Awaitable[JSONResponse]]:
    expected = f"Bearer {token}".encode()

    async def serve(request: Request) -> JSONResponse:
        note()
        given = request.headers.get("authorization", "").encode()
        if not hmac.compare_digest(given, expected):
            return JSONResponse({"error": "the control token is missing or wrong"}, 401)
        try:
            answer = await handler(request)
            if request.method != "GET" and request.url.path.rpartition("/")[2] not in _OF_NO_ACCOUNT:
                origin.append(f"{request.method} {request.url.path} {(await request.body()).decode()}")
            return JSONResponse(answer)
        except WrongEntry as error:
            return JSONResponse({"error": str(error), "at": error.at}, 400)
        except (ValueError, KeyError, TypeError, AwsError) as error:
            return JSONResponse({"error": str(error)}, 400)
        except ModuleNotFoundError as error:
            return JSONResponse({"error": str(error)}, 501)

    return serve


class _Control:
    def __init__(self, world: World, stop: Callable[[], None], keep: Callable[[list[str]], None]) -> None:
        self._world = world
        self._stop = stop
        self._keep = keep

    def _keep_clusters(self) -> None:
        world = self._world
        clouds = (("aks", world.aks.clusters), ("eks", world.eks.clusters), ("gke", world.gke.clusters))
        self._keep([f"{name} {cluster.name}" for name, clusters in clouds for cluster in clusters.values()])

    async def status(self, _: Request) -> Json:
        world = self._world
        services = [entry.service for entry in world.log.requests]
        return {
            "pid": os.getpid(),
            "clock": timestamp(world.clock.now()),
            "speed": world.clock.speed,
            "requests": {name: services.count(name) for name in sorted(set(services))} | {"total": world.log.count},
            "faults": len(world.faults.faults),
            "clusters": [await _cluster_status(world, cluster) for cluster in world.aks.clusters.values()]
            + [await eks_status(cluster) for cluster in world.eks.clusters.values()]
            + await world.gke.status(),
        }

    async def reset(self, _: Request) -> Json:
        await self._world.reset()
        self._keep_clusters()
        return {}

    async def load(self, request: Request) -> Json:
        """Handle `{name}`: replace an unused world by the one saved under the name with the same origin.

        The response is `{"loaded": false, "name"}` if there is none, with the name for `save`. This name is "" if the
        world has already answered requests.
        """
        body, world = await _object(request), self._world
        beginnings = json.dumps([str(body["name"]), *world.origin]) if not world.log.count else ""
        if beginnings not in world.saved:
            return {"loaded": False, "name": beginnings}
        await load_world(world, world.saved[beginnings])
        self._keep_clusters()
        return {"loaded": True, "name": beginnings}

    async def save(self, request: Request) -> Json:
        """Handle `{name}`, a name from `load`: save the world; `{"saved": false}` while an operation is running."""
        name = str((await _object(request))["name"])
        saved = save_world(self._world)
        if saved is not None:
            self._world.saved[name] = saved
        return {"saved": saved is not None}

    async def stop(self, _: Request) -> Json:
        asyncio.get_running_loop().call_later(0.05, self._stop)
        return {}

    async def settings(self, request: Request) -> Json:
        """Handle `speed`, `throttling`, `limits` {name: [burst, per second]}; GKE's limits exist once GKE is used.

        AKS: `pageSize`, `pace` {name: sandbox seconds}, `emptyGroups` (ids of capacity reservation groups without a
        reservation).

        GKE: `gkePace`. EKS: `eksPace`, `eksDegradedBusy` (a DEGRADED node group rejects updates),
        `eksCreatingBusy` (a CREATING one cannot be deleted; true), `eksSellsBlocks` (PurchaseCapacityBlock is not
        refused), also `pageSize`.
        """
        body, world = await _object(request), self._world
        _require_keys(
            body,
            {
                "speed",
                "throttling",
                "limits",
                "pace",
                "pageSize",
                "emptyGroups",
                "gkePace",
                "eksPace",
                "eksDegradedBusy",
                "eksCreatingBusy",
                "eksSellsBlocks",
            },
        )
        if "speed" in body:
            world.clock.set_speed(float(str(body["speed"])))
        if "pageSize" in body:
            world.aks.page_size = int(str(body["pageSize"]))
            world.eks.page_size = world.aks.page_size or 100
        groups = body.get("emptyGroups", [])
        if not isinstance(groups, list):
            message = "emptyGroups must be a list of ids"
            raise ValueError(message)  # noqa: TRY004 - the caller's mistake, reported like the others
        world.aks.empty_groups |= {str(group).lower() for group in groups}
        if "throttling" in body:
            for buckets in world.buckets():
                buckets.enabled = bool(body["throttling"])
        for name, pair in _items(body, "limits"):
            holders = {known: buckets for buckets in world.buckets() for known in buckets.limits}
            if name not in holders or not isinstance(pair, list):
                message = f"no limit {name!r}; there are {', '.join(holders)}, each [burst, refill per second]"
                raise ValueError(message)
            holders[name].limits[name] = Limit(int(pair[0]), float(pair[1]))
        names = {field.name for field in fields(Pace)}
        for name, seconds in _items(body, "pace"):
            if name not in names:
                message = f"no pace {name!r}; there are {', '.join(sorted(names))}"
                raise ValueError(message)
            setattr(world.aks.pace, name, float(str(seconds)))
        world.gke.set_pace({name: float(str(seconds)) for name, seconds in _items(body, "gkePace")})
        set_eks_pace(world.eks, {name: float(str(seconds)) for name, seconds in _items(body, "eksPace")})
        world.eks.is_degraded_busy = bool(body.get("eksDegradedBusy", world.eks.is_degraded_busy))
        world.eks.sells_blocks = bool(body.get("eksSellsBlocks", world.eks.sells_blocks))
        world.eks.is_creating_busy = bool(body.get("eksCreatingBusy", world.eks.is_creating_busy))
        return {"speed": world.clock.speed, "throttling": world.aks.throttle.enabled}

    async def make_cluster(self, request: Request) -> Json:
        """Create a cluster; an existing one stays unchanged."""
        answer = await self._make_cluster(await _object(request))
        self._keep_clusters()
        return answer

    async def _make_cluster(self, body: Json) -> Json:
        if body.get("provider") == "gke":
            self._world.gke.service()  # raises if a library is not installed
            from gpukube_sandbox.gke.steering import cluster_request  # noqa: PLC0415 - loads google-cloud-container

            google, made = await self._world.ensure_gke_cluster(cluster_request(body))
            return {"id": google.id, "created": made, "kubeUrl": google.kube_url}
        if body.get("provider") == "eks":
            amazon, made = await self._world.ensure_eks_cluster(eks_request(body))
            return {"id": amazon.arn, "created": made, "kubeUrl": amazon.kube_url}
        cluster, made = await self._world.ensure_cluster(_cluster_request(body))
        return {"id": cluster.id, "created": made, "kubeUrl": cluster.kube_url}

    async def declare(self, request: Request) -> Json:
        """Handle `{provider, ...}`: create resources that pools reference; the response lists new ones in `made`.

        EKS: `eks.steering.declare`. AKS: `resources`, ids, or `quotas`, `restrictions`, `capacityReservationGroups`
        as in `aks.quotas`, `aks.restrictions`, `aks.capacitygroups`. GKE: `gke.steering.declare`. Each cloud also
        accepts `request`, the arguments of the SDK call that creates a pool, and creates the resources that they name
        (EKS also needs `account`, `region`, `cluster`, and `zones`).

        `each`, a list of objects, declares several at once; keys next to the list apply to all of them.
        """
        body = await _object(request)
        each = body.pop("each", [{}])
        if not isinstance(each, list) or not all(isinstance(part, dict) for part in each):
            message = "each is not a list of objects"
            raise ValueError(message)
        return {"made": [made for part in each for made in self._declare({**body, **part})]}

    def _declare(self, body: dict[str, object]) -> Sequence[str]:
        provider, sent = body.pop("provider", ""), body.get("request")
        pool = sent if isinstance(sent, dict) else None
        _check_provider(provider)
        if provider == "gke":
            service = self._world.gke.service()  # raises if a library is not installed
            from gpukube_sandbox.gke import steering  # noqa: PLC0415 - loads google-cloud-container

            return steering.declare_for(service, pool) if pool else steering.declare(service, body)
        if provider == "eks":
            return (declare_eks_for if pool else declare_eks)(self._world.eks, body)
        if "quotas" in body:
            return self._world.aks.quotas.declare(body)
        if "restrictions" in body:
            return self._world.aks.restrictions.declare(body)
        if "capacityReservationGroups" in body:
            return [short_id(made) for made in self._world.aks.declare_groups(body)]
        if pool:
            key = cluster_key(*(str(body.get(part, "")) for part in ("subscription", "resourceGroup", "cluster")))
            cluster = self._world.aks.clusters.get(key)
            self._world.aks.groups.declare_for(pool["body"]["properties"], cluster.location if cluster else "eastus")
        found = ids_in(pool["body"]["properties"]) if pool else read_resources(body)
        return [short_id(made) for made in self._world.aks.declare(found)]

    async def upgrade(self, request: Request) -> Json:
        """Handle `{cluster, kubernetesVersion?, images?}`: upgrade control planes immediately, publish node images.

        Node pools stay unchanged. GKE's images depend on its versions.
        """
        body, world = await _object(request), self._world
        _require_keys(body, {"cluster", "kubernetesVersion", "images"})
        name, version, images = (str(body.get(key) or "") for key in ("cluster", "kubernetesVersion", "images"))
        azure, google, amazon = _clusters_named(world, name), world.gke.named(name), named_eks(world.eks, name)
        if not (azure or google or amazon):
            message = f"no cluster is named {name!r}"
            raise ValueError(message)
        if not (version or images):
            message = "nothing to upgrade to; specify a Kubernetes version or a date of node images"
            raise ValueError(message)
        if version and not _VERSION.fullmatch(version):
            message = f"kubernetesVersion is {version!r}; write a version such as 1.35 or 1.35.1"
            raise ValueError(message)
        if images and not re.fullmatch(r"20\d{6}", images):
            message = f"images is {images!r}; write a date such as 20260915"
            raise ValueError(message)
        for aks in azure:
            aks.kube.kubernetes_version = aks.kubernetes_version = version or aks.kubernetes_version
            aks.image_date = f"{images[:6]}.{images[6:]}.0" if images else aks.image_date
        for eks in amazon:
            eks.kube.kubernetes_version = eks.kubernetes_version = version or eks.kubernetes_version
            eks.image_date = images or eks.image_date
        for one in google:
            one.upgrade(version)
        return {"clusters": len(azure) + len(google) + len(amazon)}

    async def kubeconfig(self, _: Request) -> Json:
        """Return one kubeconfig for all clusters with the clusters' own tokens, and the subscriptions and projects."""
        clusters = list(self._world.aks.clusters.values())
        subscriptions = sorted({cluster.subscription for cluster in clusters})
        document = merged_kubeconfig(clusters)
        for amazon in self._world.eks.clusters.values():
            add_eks_context(document, amazon)
        self._world.gke.add_contexts(document)
        accounts = {cluster.account: cluster.region for cluster in self._world.eks.clusters.values()}
        projects = self._world.gke.projects()
        return {"kubeconfig": document, "subscriptions": subscriptions, "accounts": accounts, "projects": projects}

    async def requests(self, request: Request) -> Json:
        after = int(request.query_params.get("after", "0"))
        found = [entry.wire() for entry in self._world.log.requests if entry.index > after]
        return {"count": self._world.log.count, "requests": found}

    async def add_fault(self, request: Request) -> Json:
        body = await _object(request)
        if body.get("action") == "background":
            return self._block(body)
        return {"number": self._world.faults.add(parse_fault(body))}

    def _block(self, body: Json) -> Json:
        """Keep a cluster busy for some sandbox seconds, like a reconcile by the service (Azure/telescope#1213)."""
        _require_keys(body, {"action", "cluster", "seconds", "state"})
        until = self._world.clock.now() + float(str(body.get("seconds", 60)))
        clusters = _clusters_named(self._world, str(body.get("cluster", "")))
        for cluster in clusters:
            cluster.background = (until, str(body.get("state", "Updating")))
        google = self._world.gke.named(str(body.get("cluster", "")))
        for one in google:
            one.background = (until, str(body.get("state") or "operation-of-the-service"))
        return {"clusters": len(clusters) + len(google)}

    async def list_faults(self, _: Request) -> Json:
        return {"faults": [{"number": at, **fault.wire()} for at, fault in enumerate(self._world.faults.faults)]}

    async def clear_faults(self, _: Request) -> Json:
        """Remove all faults; hanging requests continue."""
        self._world.faults.clear()
        for cluster in self._world.aks.clusters.values():
            cluster.background = (0.0, "")
        for google in self._world.gke.clusters.values():
            google.background = (0.0, "")
        return {}

    async def set_stock(self, request: Request) -> Json:
        """Handle `{provider, type?, zone?, kind?, free, then?: {seconds: machines}}`, as in `stock.parse_entry`."""
        self._world.stock.put(parse_entry(await _object(request)))
        return {}

    async def list_stock(self, _: Request) -> Json:
        return {"stock": self._world.stock.wire()}

    async def clear_stock(self, _: Request) -> Json:
        self._world.stock.clear()
        return {}

    async def tamper(self, request: Request) -> Json:
        """Handle `{cluster, pool, delete?: true, set?: {property: value}}`: immediately and without any check."""
        body = await _object(request)
        _require_keys(body, {"cluster", "pool", "delete", "set"})
        clusters = _clusters_named(self._world, str(body["cluster"]))
        google = self._world.gke.named(str(body["cluster"]))
        if len(google) == 1 and not clusters:
            changes = dict(_items(body, "set"))
            await self._world.gke.tamper(google[0], str(body["pool"]), changes, delete=bool(body.get("delete")))
            return {}
        amazon = named_eks(self._world.eks, str(body["cluster"]))
        if len(amazon) == 1 and not clusters and not google:
            changes = dict(_items(body, "set"))
            delete = bool(body.get("delete"))
            await tamper_group(self._world.eks, amazon[0], str(body["pool"]), changes, delete=delete)
            return {}
        if len(clusters) != 1:
            message = f"{len(clusters)} clusters are named {body['cluster']!r}"
            raise ValueError(message)
        changes = dict(_items(body, "set"))
        await tamper_pool(clusters[0], str(body["pool"]), changes, delete=bool(body.get("delete")))
        return {}

    async def sysctls(self, request: Request) -> Json:
        """Handle `?cluster=NAME`: the kernel parameters of the nodes, which no API of Kubernetes shows."""
        kubes = self._kubes_named(request.query_params.get("cluster", ""))
        return {node: dict(found) for kube in kubes for node, found in kube.sysctls().items()}

    async def holders(self, request: Request) -> Json:
        """Handle `?cluster=NAME`: node -> UUID of a GPU or MIG instance -> pods that hold it, by plugin or claim."""
        kubes = self._kubes_named(request.query_params.get("cluster", ""))
        return {node: held for kube in kubes for node, held in (await kube.gpu_holders()).items()}

    def _kubes_named(self, name: str) -> list[KubeCluster]:
        world = self._world
        kubes = [cluster.kube for cluster in _clusters_named(world, name)]
        kubes += [cluster.kube for cluster in named_eks(world.eks, name)]
        return kubes + [cluster.kube for cluster in world.gke.named(name)]

    async def deny(self, request: Request) -> Json:
        """Handle `{cluster, denied: [[verb, resource], ...]}`: replace the accesses that RBAC denies in the cluster."""
        body = await _object(request)
        _require_keys(body, {"cluster", "denied"})
        pairs = body["denied"]
        if not isinstance(pairs, list):
            message = "denied is not a list"
            raise TypeError(message)
        denied = {(str(verb), str(resource)) for verb, resource in pairs}
        clusters = _clusters_named(self._world, str(body.get("cluster", "")))
        for cluster in clusters:
            cluster.kube.denied = set(denied)
        google = self._world.gke.named(str(body.get("cluster", "")))
        for one in google:
            one.kube.denied = set(denied)
        amazon = named_eks(self._world.eks, str(body.get("cluster", "")))
        for eks in amazon:
            eks.kube.denied = set(denied)
        return {"clusters": len(clusters) + len(google) + len(amazon)}

    async def permissions(self, _: Request) -> Json:
        """Return the permissions that gpukube's calls have needed since the start, and the denied ones."""
        permits = self._world.permits
        allowed = None if permits.allowed is None else list(permits.allowed)
        return {"used": sorted(permits.used), "denied": sorted(permits.denied), "allowed": allowed}

    async def permit(self, request: Request) -> Json:
        """Handle `{denied: [permission, ...]}`: denied permissions, including Kubernetes' `create pods/eviction`.

        `{allowed: [pattern, ...]}`: the only allowed permissions of clouds; null allows all. Each replaces its previous
        value.
        """
        body, permits = await _object(request), self._world.permits
        _require_keys(body, {"denied", "allowed"})
        if "denied" in body:
            denied = _strings(body, "denied")
            unknown = [text for text in denied if not (text in known_permissions() or is_access(text))]
            if unknown:
                message = f"no call in the sandbox needs a permission {unknown[0]!r}"
                near = get_close_matches(unknown[0], known_permissions(), n=1)
                raise ValueError(message + (f"; did you mean {near[0]}?" if near else ""))
            permits.denied = set(denied)
        if "allowed" in body:
            permits.allowed = None if body["allowed"] is None else tuple(_strings(body, "allowed"))
        return {}

    async def user(self, request: Request) -> Json:
        """Handle `{cluster, user, groups?}`: the user that the cluster's token authenticates; "": an administrator."""
        body = await _object(request)
        _require_keys(body, {"cluster", "user", "groups"})
        name, place = str(body.get("user") or ""), str(body.get("cluster", ""))
        user = user_named(name, _strings(body, "groups")) if name else SANDBOX_ADMIN
        kubes = self._kubes_named(place)
        for kube in kubes:
            kube.user = user
        return {"clusters": len(kubes)}


async def _cluster_status(world: World, cluster: Cluster) -> Json:
    pools = [
        {
            "name": pool.name,
            "state": pool.state,
            "vmSize": pool.properties["vmSize"],
            "count": pool.properties["count"],
            "nodes": list(pool.nodes),
        }
        for pool in cluster.pools.values()
    ]
    ready = sum(_is_ready(node) for node in await cluster.kube.api.list("nodes"))
    wire = cluster.wire(world.clock.now())
    properties = wire["properties"]
    state = properties["provisioningState"] if isinstance(properties, dict) else ""
    return {
        "provider": "aks",
        "id": cluster.id,
        "name": cluster.name,
        "kubeUrl": cluster.kube_url,
        "state": state,
        "readyNodes": ready,
        "pools": pools,
    }


def _is_ready(node: Json) -> bool:
    status = node.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions or ())


def _cluster_request(body: Json) -> ClusterRequest:
    _check_provider(body.get("provider"))
    check_entry(body, _CLUSTER)
    check_subscription(body)
    check_cluster(body, _NAME, "at most 63 letters, digits, - and _, beginning and ending with a letter or digit")
    options: dict[str, object] = {}
    for name, value in _items(body, "options"):
        if name not in _OPTION_NAMES:
            message = f"no option {name!r}; there are {', '.join(_OPTION_NAMES)}"
            raise ValueError(message)
        options[_OPTION_NAMES[name]] = value
    return ClusterRequest(
        subscription=str(body["subscription"]),
        group=str(body["resourceGroup"]),
        name=str(body["name"]),
        location=str(body.get("location") or "eastus"),
        kubernetes_version=str(body.get("kubernetesVersion") or "1.34.2"),
        options=ClusterOptions(**options),  # type: ignore[arg-type] # names are checked; a test is responsible for values
    )


def _check_provider(name: object) -> None:
    if name not in _CLOUDS:
        raise WrongEntry(f"provider is {name or 'missing'}; there are {', '.join(_CLOUDS)}", "provider")


def _clusters_named(world: World, name: str) -> list[Cluster]:
    return [
        cluster
        for cluster in world.aks.clusters.values()
        if name.lower() in {"", cluster.name.lower(), cluster.id.lower(), cluster.address.lower()}
    ]


async def _object(request: Request) -> Json:
    raw = await request.body()
    body = json.loads(raw) if raw else {}
    if not isinstance(body, dict):
        message = "the body is not a JSON object"
        raise TypeError(message)
    return body


def _strings(body: Json, key: str) -> list[str]:
    value = body.get(key) or []
    if not isinstance(value, list):
        message = f"{key} is not a list"
        raise TypeError(message)
    return [str(item) for item in value]


def _items(body: Json, key: str) -> list[tuple[str, object]]:
    value = body.get(key) or {}
    if not isinstance(value, dict):
        message = f"{key} is not an object"
        raise TypeError(message)
    return list(value.items())


def _require_keys(body: Json, known: set[str]) -> None:
    unknown = sorted(set(body) - known)
    if unknown:
        message = f"unknown keys {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        raise ValueError(message)
