"""The emulated GKE in the sandbox's own control API.

In scope: parsing its documents, reporting status, changes from outside GKE. Out of scope: its HTTP
(`gpukube_sandbox.control`).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING, Any

from google.cloud import container_v1 as wire
from google.protobuf import json_format  # type: ignore[import-untyped] # ships no types

from gpukube_sandbox.gke.clusters import ClusterOptions
from gpukube_sandbox.gke.lifecycle import delete_machine, seed_pool
from gpukube_sandbox.gke.machines import all_machines, find_machine
from gpukube_sandbox.gke.making import GkeRequest
from gpukube_sandbox.gke.nodes import retouch_node
from gpukube_sandbox.gke.pools import Pool, clone, count_per_zone
from gpukube_sandbox.gke.quotas import ALL_REGIONS, NAMES
from gpukube_sandbox.gke.references import Known, things_of
from gpukube_sandbox.gke.service import GkeService, pool_place
from gpukube_sandbox.gke.wire.names import REGIONS, exists, is_zone, parse_name, region_of, zones_of
from gpukube_sandbox.shapes import Keys, WrongEntry, check_cluster, check_entry, check_known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.gke.clusters import Cluster
    from gpukube_sandbox.gke.wire.answers import Json

_OPTIONS = {
    "cpuPool": ("cpu_pool", bool),
    "releaseChannel": ("release_channel", str),
    "zones": ("zones", list),
    "autopilot": ("autopilot", bool),
    "gpuQuota": ("gpu_quota", dict),
    "acceleratorZones": ("accelerator_zones", dict),
    "foreignPlugin": ("foreign_plugin", bool),
    "reservations": ("reservations", dict),
}
_CLUSTER = Keys(
    {"provider": str, "project": str, "location": str, "name": str}, {"kubernetesVersion": str, "options": dict}
)
_NAME = re.compile(r"(?=.{1,40}$)[a-z]([a-z0-9-]*[a-z0-9])?")
"""Source: the proto's comment on Cluster.name."""
_RESERVATION = Keys(
    {"name": str},
    {
        "zone": str,
        "machineType": str,
        "count": int,
        "assuredCount": int,
        "inUseByOthers": int,
        "status": str,
        "deleteAtTime": str,
    },
)
_STATES = ("CREATING", "DELETING", "INVALID", "READY", "UPDATING")
"""Reservation.Status of google-cloud-compute."""
_THINGS = Keys(
    {"project": str},
    {
        "serviceAccounts": [str],
        "resources": [str],
        "reservations": [_RESERVATION],
        "region": str,
        "quotas": Keys({}, dict.fromkeys(NAMES, int)),
    },
)
_RESOURCE = re.compile(
    r"global/networks/[^/]+|regions/[^/]+/(subnetworks|resourcePolicies)/[^/]+|zones/[^/]+/nodeGroups/[^/]+"
)


def declare(service: GkeService, body: Mapping[str, object]) -> list[str]:
    """Declare resources of a project; return a description of each new one.

    Args:
        service: Service that gets the resources.
        body: `{"project", "serviceAccounts"?: [email], "resources"?: [name within the project], "reservations"?:
            [{"name", "zone"?, "machineType"?, "count"?, "assuredCount"?, "inUseByOthers"?, "status"?,
            "deleteAtTime"?}], "region"?, "quotas"?: {`quotas.NAMES`: GPUs in the region}}`.

    Raises:
        WrongEntry: An unknown or missing key, a value of the wrong type, or an unknown zone or machine type.
    """
    check_entry(body, _THINGS)
    _check_things(body)
    known, new = service.things.setdefault(str(body["project"]), Known()), []
    for email in _list(body, "serviceAccounts"):
        if email not in known.accounts:
            known.accounts.add(email)
            new.append(f"service account {email}")
    for name in _list(body, "resources"):
        if name not in known.resources:
            known.resources.add(name)
            new.append(name)
    for given in _list(body, "reservations"):
        name = given["name"]
        if name not in known.reservations:
            known.reservations[name] = {key: value for key, value in given.items() if key != "name"}
            new.append(f"reservation {name}")
    limits = body.get("quotas")
    for name, limit in limits.items() if isinstance(limits, dict) else ():
        if service.quotas.set(str(body["project"]), str(body.get("region", "")), name, limit):
            new.append(f"quota {name} of {limit}")
    return new


def _check_things(body: Mapping[str, object]) -> None:
    """Reject resources that Google Cloud does not have, before any is created."""
    for at, name in enumerate(_list(body, "resources")):
        if not _RESOURCE.fullmatch(name):
            forms = (
                "global/networks/NAME, regions/REGION/subnetworks/NAME, regions/REGION/resourcePolicies/NAME, "
                "zones/ZONE/nodeGroups/NAME"
            )
            raise WrongEntry(f"{name} is not a resource that a pool can name; write {forms}", "resources", at)
    check_known(body.get("region"), REGIONS, "region")
    limits = body.get("quotas")
    if isinstance(limits, dict) and set(limits) - {ALL_REGIONS} and not body.get("region"):
        raise WrongEntry("quotas of a region need its name: region is missing", "quotas")
    for at, given in enumerate(_list(body, "reservations")):
        if "zone" in given and not (is_zone(given["zone"]) and exists(given["zone"])):
            raise WrongEntry(f"zone {given['zone']} does not exist", "reservations", at, "zone")
        check_known(given.get("status"), _STATES, "reservations", at, "status")
        machine = given.get("machineType", "")
        if find_machine(machine) is None:
            check_known(machine, {one.name for one in all_machines()}, "reservations", at, "machineType")


def declare_for(service: GkeService, request: Mapping[str, object]) -> list[str]:
    """Declare the resources that a request for a pool names: `{"parent", "nodePool"}`; like `declare`.

    Raises:
        KeyError: A key is missing.
        ValueError: The pool is invalid.
    """
    message = wire.NodePool.pb()()
    try:
        json_format.ParseDict(request["nodePool"], message, ignore_unknown_fields=True)
    except json_format.ParseError as error:
        raise ValueError(str(error)) from error
    needed = things_of(wire.NodePool.wrap(message), parse_name(str(request["parent"])))
    return [new for things in needed for new in declare(service, things)]


def _list(body: Mapping[str, object], key: str) -> list[Any]:
    """Return a list whose type was checked."""
    value = body.get(key)
    return value if isinstance(value, list) else []


def cluster_request(body: Json) -> GkeRequest:
    """Parse POST /_sandbox/clusters.

    Raises:
        ValueError: An unknown or missing key, an unknown option, or a value of the wrong type.
    """
    check_entry(body, _CLUSTER)
    location = str(body["location"])
    if not exists(location):
        region = region_of(location)
        known = zones_of(region) if is_zone(location) and region in REGIONS else REGIONS
        check_known(location, known, "location")
    rule = "at most 40 lower-case letters, digits and -, beginning with a letter and not ending with -"
    check_cluster(body, _NAME, rule)
    given, options = body.get("options"), dict[str, object]()
    for name, value in given.items() if isinstance(given, dict) else ():
        field, kind = _OPTIONS.get(name, ("", object))
        if not field or not isinstance(value, kind):
            message = f"invalid option {name!r} = {value!r}; the options are {', '.join(_OPTIONS)}"
            raise ValueError(message)
        options[field] = tuple(value) if isinstance(value, list) else value
    return GkeRequest(
        project=str(body["project"]),
        location=str(body["location"]),
        name=str(body["name"]),
        kubernetes_version=str(body.get("kubernetesVersion") or ""),
        options=ClusterOptions(**options),  # type: ignore[arg-type] # types were checked against _OPTIONS
    )


async def cluster_status(cluster: Cluster) -> Json:
    """Return a cluster in the form of the status."""
    pools = [
        {
            "name": pool.name,
            "state": pool.wire.status.name,
            "machineType": pool.wire.config.machine_type,
            "count": sum(count_per_zone(pool.wire)),
            "nodes": pool.all_nodes(),
        }
        for pool in cluster.pools.values()
    ]
    nodes = await cluster.kube.api.list("nodes")
    ready = sum(
        any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions") or ())
        for node in nodes
    )
    return {
        "provider": "gke",
        "id": cluster.id,
        "name": cluster.name,
        "kubeUrl": cluster.kube_url,
        "state": "RUNNING",
        "readyNodes": ready,
        "pools": pools,
    }


async def tamper_pool(
    service: GkeService, cluster: Cluster, name: str, changes: Mapping[str, object], *, delete: bool
) -> None:
    """Delete a pool, or set its wire fields at once and unchecked.

    Args:
        service: Service with its operations.
        cluster: Cluster of the pool.
        name: Pool.
        changes: Fields of NodePool in their JSON form, such as `{"config": {"labels": {"a": "b"}}}`; a map or a message
            is merged, a list replaces the existing one. `status` sets the state. Labels, taints, and count take effect
            on the nodes.
        delete: Whether to delete the pool and its nodes.

    Raises:
        KeyError: The pool does not exist.
        ValueError: Unknown field of NodePool.
    """
    pool = cluster.pools[name]
    if delete:
        await _stop_operations(service, cluster, pool)
        del cluster.pools[name]
        for zone, names in pool.nodes.items():
            while names:
                await delete_machine(cluster, pool, zone, names[-1])
        return
    before, after = pool.wire, clone(pool.wire)
    _merge(after, changes)
    pool.wire = after
    pool.touch()
    await _fit(cluster, pool, before)


def _merge(pool: wire.NodePool, changes: Mapping[str, object]) -> None:
    message = wire.NodePool.pb(pool)
    current = json_format.MessageToDict(message)
    try:
        merged = json_format.ParseDict(_merged(current, changes), type(message)())
    except json_format.ParseError as error:
        raise ValueError(str(error)) from error
    message.CopyFrom(merged)


def _merged(before: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    found = dict(before)
    for key, value in changes.items():
        below = found.get(key)
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(below, dict):
            found[key] = _merged(below, value)
        else:
            found[key] = value
    return found


async def _fit(cluster: Cluster, pool: Pool, before: wire.NodePool) -> None:
    sizes = dict(zip(pool.wire.locations, count_per_zone(pool.wire), strict=True))
    for zone, names in pool.nodes.items():
        while len(names) > sizes.get(zone, 0):
            await delete_machine(cluster, pool, zone, names[-1])
    for node in pool.all_nodes():
        await retouch_node(cluster.kube, node, before, pool.wire)
    await seed_pool(cluster, pool)


async def _stop_operations(service: GkeService, cluster: Cluster, pool: Pool) -> None:
    """Cancel the operations of a pool that is deleted."""
    place = pool_place(cluster, pool)
    for operation in service.operations.values():
        if operation.is_running and operation.place == place and operation.task is not None:
            operation.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await operation.task
            operation.end(service.clock.now())
