"""The emulated AWS in the sandbox's own control API.

In scope: parsing its documents, reporting status, changes from outside EKS. Out of scope: its HTTP
(`gpukube_sandbox.control`).
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.clusters import ClusterOptions, Subnet
from gpukube_sandbox.eks.instances import TYPES, ZONES
from gpukube_sandbox.eks.lifecycle import Before, Job, seed, stop_work, terminate_instance
from gpukube_sandbox.eks.machines import node_labels, node_taints, retouch_node
from gpukube_sandbox.eks.making import EksRequest
from gpukube_sandbox.eks.placement import STRATEGIES, new_placement_group
from gpukube_sandbox.eks.quotas import QUOTAS
from gpukube_sandbox.eks.references import things_of
from gpukube_sandbox.eks.regions import REGIONS
from gpukube_sandbox.eks.reservations import read_reservations
from gpukube_sandbox.eks.service import EksService, eks_key
from gpukube_sandbox.eks.things import NODES, Role
from gpukube_sandbox.eks.wire.answers import objects_in, strings_in
from gpukube_sandbox.shapes import Keys, WrongEntry, check_cluster, check_entry, check_known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.wire.answers import Json

_OPTIONS: dict[str, tuple[str, type]] = {
    "nodeGroups": ("node_groups", list),
    "subnets": ("subnets", list),
    "foreignPlugin": ("foreign_plugin", bool),
    "autoscaler": ("autoscaler", str),
    "publicEndpoint": ("public_endpoint", bool),
    "status": ("status", str),
    "authenticationMode": ("authentication_mode", str),
    "autoMode": ("auto_mode", bool),
    "mapped": ("mapped", bool),
    "groupQuota": ("group_quota", int),
    "nodeQuota": ("node_quota", int),
    "extendedTolerations": ("extended_tolerations", bool),
    "roles": ("roles", list),
    "tags": ("tags", dict),
    "reservations": ("reservations", list),
}
_CLUSTER = Keys(
    {"provider": str, "account": str, "region": str, "name": str}, {"kubernetesVersion": str, "options": dict}
)
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
"""ClusterName in botocore's EKS model."""
_ACCOUNT_DIGITS = 12
_RESERVATION = Keys(
    {"id": str, "type": str, "zone": str},
    {
        "count": int,
        "block": bool,
        "state": str,
        "groups": [str],
        "placementGroup": str,
        "open": bool,
        "start": int,
        "end": int,
    },
)
_THINGS = Keys(
    {"account": str, "region": str},
    {
        "roles": [Keys({}, {"arn": str, "name": str, "trust": [str]})],
        "keyPairs": [str],
        "securityGroups": [str],
        "efaSecurityGroups": [str],
        "kmsKeys": [str],
        "placementGroups": [Keys({"name": str}, {"strategy": str})],
        "subnets": [Keys({"cluster": str, "id": str, "zone": str}, {"public": bool, "taken": int})],
        "reservations": [_RESERVATION],
        "quotas": Keys({}, dict.fromkeys(QUOTAS, int)),
    },
)


def cluster_request(body: Json) -> EksRequest:
    """Parse POST /_sandbox/clusters.

    Raises:
        ValueError: An unknown or missing key, an unknown option, a value of the wrong type, or no account id.
    """
    check_entry(body, _CLUSTER)
    check_known(body["region"], REGIONS, "region")
    check_cluster(body, _NAME, "at most 100 letters, digits, - and _, beginning with a letter or digit")
    options: dict[str, object] = {}
    for name, value in _inside(body, "options").items():
        field, kind = _OPTIONS.get(name, ("", object))
        if not field or not isinstance(value, kind):
            message = f"invalid option {name!r} = {value!r}; the options are {', '.join(_OPTIONS)}"
            raise ValueError(message)
        options[field] = tuple(value) if field == "roles" and isinstance(value, list) else value
    return EksRequest(
        account=_account(body),
        region=str(body["region"]),
        name=str(body["name"]),
        kubernetes_version=str(body.get("kubernetesVersion") or "1.34.2"),
        options=ClusterOptions(**options),  # type: ignore[arg-type] # types were checked against _OPTIONS
    )


def declare(service: EksService, body: Mapping[str, object]) -> list[str]:
    """Declare resources of an account; return a description of each new one.

    Args:
        service: Service that gets the resources.
        body: `{"account", "region", "roles"?: [{"arn" or "name", "trust"?: [service]}], "keyPairs"?: [name],
            "securityGroups"?: [id], "efaSecurityGroups"?: [id], "kmsKeys"?: [id, alias, or ARN], "placementGroups"?:
            [{"name", "strategy"?}], "subnets"?: [{"cluster", "id", "zone", "public"?, "taken"?}], "reservations"?: [in
                the form of `read_reservations`], "quotas"?: {code: vCPUs}}`.

    Raises:
        WrongEntry: An unknown or missing key, a value of the wrong type, or a resource that AWS does not have.
    """
    check_entry(body, _THINGS)
    check_known(body["region"], REGIONS, "region")
    account, region = _account(body), str(body["region"])
    known, new = service.known(account, region), []
    _check_things(service, body, account, region)
    for given in objects_in(body.get("roles")):
        arn = str(given.get("arn") or f"arn:aws:iam::{account}:role/{given['name']}")
        trust = tuple(strings_in(given["trust"])) if "trust" in given else (NODES,)
        if known.add_role(Role(arn, service.clock.now(), trust)):
            new.append(f"role {arn}")
    for key, names, what in (
        ("keyPairs", known.keys, "key pair"),
        ("kmsKeys", known.kms_keys, "KMS key"),
        ("securityGroups", known.groups, "security group"),
        ("efaSecurityGroups", known.efa_groups, "security group for EFA"),
    ):
        new += [f"{what} {name}" for name in strings_in(body.get(key)) if name not in names]
        names.update(strings_in(body.get(key)))
    known.groups |= known.efa_groups
    for given in objects_in(body.get("placementGroups")):
        made = new_placement_group(account, region, str(given["name"]), str(given.get("strategy", "cluster")))
        if known.placement_groups.setdefault(made.name, made) is made:
            new.append(f"placement group {made.name}")
    for given in objects_in(body.get("subnets")):
        cluster = service.clusters[eks_key(account, region, str(given["cluster"]))]
        if not cluster.zone(str(given["id"])):
            number, public = len(cluster.subnets), bool(given.get("public", False))
            zone = str(given["zone"])[-1:]
            taken, cidr = int(str(given.get("taken", 0))), f"10.1.{number}.0/24"
            cluster.subnets.append(Subnet(str(given["id"]), zone, public, cidr, listed=False, taken=taken))
            new.append(f"subnet {given['id']}")
    for code, value in _inside(dict(body), "quotas").items():
        if known.quotas.get(code) != value:
            known.quotas[code] = float(str(value))
            new.append(f"quota {code} of {value}")
    found = read_reservations(body.get("reservations"), service.clock.now())
    new += [f"capacity reservation {one.id}" for one in found if known.reservations.setdefault(one.id, one) is one]
    return new


def _account(body: Mapping[str, object]) -> str:
    account = str(body["account"])
    if not (account.isdigit() and len(account) == _ACCOUNT_DIGITS):
        raise WrongEntry(f"account is {account!r}; it must have twelve digits", "account")
    return account


def _check_things(service: EksService, body: Mapping[str, object], account: str, region: str) -> None:
    """Reject resources that AWS does not have, before any is created."""
    for at, given in enumerate(objects_in(body.get("roles"))):
        if "arn" not in given and "name" not in given:
            raise WrongEntry("a role has a name or an arn", "roles", at)
    for at, given in enumerate(objects_in(body.get("subnets"))):
        _check_zone(given, region, "subnets", at)
        if eks_key(account, region, str(given["cluster"])) not in service.clusters:
            message = f"cluster {given['cluster']} does not exist in account {account} and region {region}"
            raise WrongEntry(message, "subnets", at, "cluster")
    for at, given in enumerate(objects_in(body.get("placementGroups"))):
        check_known(given.get("strategy", ""), STRATEGIES, "placementGroups", at, "strategy")
    for at, given in enumerate(objects_in(body.get("reservations"))):
        _check_zone(given, region, "reservations", at)
        if given["type"] not in TYPES:
            raise WrongEntry(f"{given['type']} is not an instance type", "reservations", at, "type")


def _check_zone(given: Json, region: str, *at: str | int) -> None:
    """Check a zone, given as a full name or as its letter."""
    zones = [f"{region}{letter}" for letter in ZONES]
    if given["zone"] not in [*ZONES, *zones]:
        raise WrongEntry(f"zone {given['zone']} does not exist; the zones are {', '.join(zones)}", *at, "zone")


def declare_for(service: EksService, body: Mapping[str, object]) -> list[str]:
    """Declare the resources that a request for a group names, like `declare`.

    Args:
        service: Service that gets the resources.
        body: `{"account", "region", "cluster", "request", "zones"?}`: the arguments of CreateNodegroup (`nodegroup`),
            CreateLaunchTemplate (`launchTemplate`), and CreatePlacementGroup (`placementGroup`) as gpukube stores them,
            and the names of the group's zones.
    """
    request = body["request"]
    given = request if isinstance(request, dict) else {}
    template = _inside(_inside(given, "launchTemplate"), "LaunchTemplateData")
    zones = [name[-1:] for name in strings_in(body.get("zones"))]
    new = [str(_inside(given, "placementGroup").get("GroupName", ""))]
    named = things_of(_inside(given, "nodegroup"), template, str(body["cluster"]), zones, new)
    return declare(service, {"account": body["account"], "region": body["region"], **named})


def _inside(body: Json, key: str) -> Json:
    value = body.get(key)
    return value if isinstance(value, dict) else {}


async def cluster_status(cluster: EksCluster) -> Json:
    """Return a cluster in the form of the status."""
    pools = [
        {
            "name": group.name,
            "state": group.status,
            "instanceType": group.types[0].name,
            "count": group.desired,
            "nodes": list(group.nodes),
        }
        for group in cluster.groups.values()
    ]
    ready = sum(
        any(c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions") or ())
        for node in await cluster.kube.api.list("nodes")
    )
    return {
        "provider": "eks",
        "id": cluster.arn,
        "name": cluster.name,
        "kubeUrl": cluster.kube_url,
        "state": cluster.status,
        "readyNodes": ready,
        "pools": pools,
    }


def named(service: EksService, name: str) -> list[EksCluster]:
    """Return clusters by name, ARN, or gpukube's address; all for ""."""
    return [
        cluster for cluster in service.clusters.values() if name in {"", cluster.name, cluster.arn, cluster.address}
    ]


def add_context(document: Json, cluster: EksCluster) -> None:
    """Add a cluster to a kubeconfig under its ARN, as `aws eks update-kubeconfig` does."""
    authority = base64.b64encode(cluster.ca_pem).decode()
    server: Json = {"server": cluster.kube_url, "certificate-authority-data": authority}
    entries: dict[str, Json] = {
        "clusters": {"name": cluster.arn, "cluster": server},
        "users": {"name": cluster.arn, "user": {"token": cluster.token}},
        "contexts": {"name": cluster.arn, "context": {"cluster": cluster.arn, "user": cluster.arn}},
    }
    for key, entry in entries.items():
        found = document.get(key)
        document[key] = [*(found if isinstance(found, list) else []), entry]
    document["current-context"] = document.get("current-context") or cluster.arn


def set_pace(service: EksService, pace: Mapping[str, float]) -> None:
    """Set durations of `lifecycle.Pace`, in sandbox seconds.

    Raises:
        ValueError: Unknown duration.
    """
    for name, seconds in pace.items():
        if not hasattr(service.pace, name):
            message = f"no pace {name!r}"
            raise ValueError(message)
        setattr(service.pace, name, seconds)


async def tamper_group(
    service: EksService, cluster: EksCluster, name: str, changes: Mapping[str, object], *, delete: bool
) -> None:
    """Delete a node group, or set members of it; a value of None removes one.

    Args:
        service: Service with the clock.
        cluster: Cluster of the group.
        name: Node group.
        changes: Members of the wire form, and `status`, `tags`, and `issues` (of its health). Labels, taints, and sizes
            take effect on the nodes at once.
        delete: Whether to delete the group and its nodes.

    Raises:
        KeyError: The group does not exist.
    """
    group = cluster.groups[name]
    if delete:
        await stop_work(group)
        del cluster.groups[name]
        while group.nodes:
            await terminate_instance(cluster, group, group.nodes[-1])
        return
    before = Before.of(group)
    status, issues = group.status, group.issues
    for key, value in changes.items():
        if key in {"status", "tags", "issues"}:
            setattr(group, key, value)
        elif value is None:
            group.members.pop(key, None)
        else:
            group.members[key] = value
    for node in group.nodes:
        labels = before.labels, node_labels(group)
        await retouch_node(cluster.kube, node, labels, (before.taints, node_taints(group.members)))
    while len(group.nodes) > group.desired:
        await terminate_instance(cluster, group, group.nodes[-1])
    kept = group.status if "status" in changes else status
    kept_issues = group.issues if "issues" in changes else issues
    await seed(Job(cluster, group, service.clock, service.pace))
    group.status, group.issues = kept, kept_issues
