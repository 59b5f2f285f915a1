"""The Cluster Autoscaler on EKS: it runs only if it is installed in the cluster, and resizes Auto Scaling groups.

In scope: finding it among the pods, its template of a node group's nodes, its changes to groups. Out of scope: scaling
decisions (`kube.autoscaler`), updates through the EKS API (`lifecycle`).

Source: kubernetes/autoscaler cluster-autoscaler/cloudprovider/aws (aws_manager.go buildNodeFromTemplate, aws_wrapper.go
getManagedNodegroupInfo, README); docs: eks/managed-node-groups (tags for auto-discovery).
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.failures import planned_failure
from gpukube_sandbox.eks.groups import type_names
from gpukube_sandbox.eks.keys import EFFECTS, labels_of
from gpukube_sandbox.eks.lifecycle import Job, Pace, scale_out, terminate_instance
from gpukube_sandbox.eks.wire.answers import AwsError, objects_in
from gpukube_sandbox.kube.autoscaler.expanding import PRICE, chain_error
from gpukube_sandbox.kube.autoscaler.groups import Failure, Group, Profile, duration_s, make_template_node
from gpukube_sandbox.kube.autoscaler.scaler import SCAN_S
from gpukube_sandbox.kube.nodes.shapes import NodeShape, Taint
from gpukube_sandbox.kube.store.objects import spec, status

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.groups import NodeGroup
    from gpukube_sandbox.faults import FaultBook
    from gpukube_sandbox.kube.store.objects import JsonObject

GPU_LABEL = "k8s.amazonaws.com/accelerator"
_TEMPLATE = "k8s.io/cluster-autoscaler/node-template/"
_PODS = 110
_NO_LAUNCH = "AsgInstanceLaunchFailures"
_VERSION = re.compile(r":v(\d+)\.(\d+)\.")
_FALLS_BACK = (1, 26)
"""First version whose priority expander leaves the choice to others if its ConfigMap is missing or invalid."""
_EFFECTS = frozenset({"NoSchedule", "NoExecute", "PreferNoSchedule"})


@dataclass(slots=True)
class EksGroups:
    """The node groups of a cluster; implements `Groups`.

    Attributes:
        faults: Returns the failure of a scale-up, if one is planned; its operation kind is "autoscale".
    """

    cluster: EksCluster
    clock: Clock
    faults: FaultBook

    async def profile(self) -> Profile | None:
        """Read the flags of the cluster's own autoscaler, if it runs and discovers this cluster's groups."""
        for pod in await self.cluster.kube.api.list("pods"):
            for container in spec(pod).get("containers") or ():
                flags = _flags(container)
                if flags is not None and status(pod).get("phase") == "Running" and self._discovers(flags):
                    return _profile(flags, str(container.get("image", "")))
        return None

    def _discovers(self, flags: dict[str, str]) -> bool:
        discovery = flags.get("node-group-auto-discovery", "")
        named = re.findall(r"k8s\.io/cluster-autoscaler/([^,=]+)", discovery)
        return bool(discovery) and all(name in {"enabled", self.cluster.name} for name in named)

    def listed(self) -> list[Group]:
        """List the Auto Scaling groups of node groups without a running operation; EKS tags all for discovery."""
        return [
            Group(
                group.asg,
                group.name,
                tuple(group.nodes),
                group.desired,
                group.scaling["minSize"],
                group.scaling["maxSize"],
                error=next((str(one["message"]) for one in group.issues if one["code"] == _NO_LAUNCH), ""),
            )
            for group in self.cluster.groups.values()
            if group.status in {"ACTIVE", "DEGRADED"}
        ]

    def template_node(self, name: str) -> JsonObject:
        """Return the node that the autoscaler expects: hardware of the first type, labels, taints, and ASG tags."""
        group = self._group(name)
        kind = group.types[0]
        devices = {"nvidia.com/gpu": str(kind.gpus)} if kind.is_nvidia else {}  # a fraction of a GPU counts as none
        labels = {
            "topology.kubernetes.io/region": self.cluster.region,
            "topology.kubernetes.io/zone": f"{self.cluster.region}{kind.zones[0]}",
            **_tagged(group.asg_tags, "label/"),
            "eks.amazonaws.com/nodegroup": group.name,
            "eks.amazonaws.com/capacityType": str(group.members["capacityType"]),
            **labels_of(group.members),
        }
        devices |= _tagged(group.asg_tags, "resources/")
        devices |= _tagged(group.tags, "resources/")  # the node group's tags take precedence
        shape = NodeShape(
            name=f"template-{group.asg}",
            machine=kind.name,
            labels=labels,
            taints=(*_group_taints(group), *_tagged_taints(group)),
            cpu=kind.vcpus,
            memory_gib=kind.memory_gib,
            max_pods=_PODS,
            arch={"x86_64": "amd64"}.get(kind.arch, kind.arch),
        )
        return make_template_node(shape, {key: int(value) for key, value in devices.items() if value.isdigit()})

    def template_slices(self, name: str) -> list[JsonObject]:  # noqa: ARG002 -- no group has any
        """Return nothing: of a group without nodes, the autoscaler knows no devices of DRA drivers."""
        return []

    async def grow(self, name: str, count: int) -> Failure | None:
        """Raise the desired size of an Auto Scaling group; lower it again for instances that fail to come up.

        The autoscaler sees a failed activity at its next scan, and does not wait as EKS does.
        """
        group = self._group(name)
        _resize(group, count)
        try:
            kind = type_names(group.members, group.data)[0]
            failure = planned_failure(
                self.faults.operation("aws", self.cluster.name, group.name, "autoscale"),
                self.cluster,
                kind,
                "",
                spot=group.members["capacityType"] == "SPOT",
            )
        except AwsError as error:
            _resize(group, -count)
            return Failure(error.message, count, "refused")
        job = Job(self.cluster, group, self.clock, Pace(give_up_s=SCAN_S), failure)
        try:
            found = await scale_out(job, 0.0)
        finally:
            missing = max(0, group.desired - len(group.nodes))
            _resize(group, -missing)
        if found is None:
            return None
        return Failure(found.message, missing, "time" if found.code == "NodeCreationFailure" else "machines")

    def release(self, name: str) -> None:
        """Lower the desired size, which ends Auto Scaling's attempts."""
        group = self._group(name)
        _resize(group, max(len(group.nodes), group.scaling["minSize"]) - group.desired)

    async def shrink(self, name: str, node: str) -> None:
        """Terminate one instance and lower the desired size by one."""
        group = self._group(name)
        if node in group.nodes:
            _resize(group, -1)
            await asyncio.shield(terminate_instance(self.cluster, group, node))

    def _group(self, name: str) -> NodeGroup:
        return next(group for group in self.cluster.groups.values() if group.asg == name)


def _resize(group: NodeGroup, by: int) -> None:
    group.members["scalingConfig"] = {**group.scaling, "desiredSize": group.desired + by}


def _flags(container: JsonObject) -> dict[str, str] | None:
    """Return the flags of a cluster autoscaler's command line; None for any other program."""
    line = [str(part) for part in [*(container.get("command") or ()), *(container.get("args") or ())]]
    by_image = "cluster-autoscaler" in str(container.get("image", "")).rpartition("/")[2]
    if not by_image and not (line and line[0].rpartition("/")[2] == "cluster-autoscaler"):
        return None
    pairs = [part.lstrip("-").partition("=") for part in line if part.startswith("-")]
    return {key: value for key, _, value in pairs}


def _profile(flags: dict[str, str], image: str) -> Profile | None:
    """Return the configuration by flags and version; None if the program ends at once because of its expanders."""
    expanders = tuple(flags.get("expander", "least-waste").split(","))
    if chain_error(expanders) or PRICE in expanders:  # AWS has no price model
        return None
    version = _VERSION.search(image)
    return Profile(
        GPU_LABEL,
        unneeded_s=duration_s(flags.get("scale-down-unneeded-time", "10m")),
        after_add_s=duration_s(flags.get("scale-down-delay-after-add", "10m")),
        unready_s=duration_s(flags.get("scale-down-unready-time", "20m")),
        provision_s=duration_s(flags.get("max-node-provision-time", "15m")),
        expanders=expanders,
        namespace=flags.get("namespace", "kube-system"),
        needs_priorities=version is not None and (int(version[1]), int(version[2])) < _FALLS_BACK,
    )


def _tagged(tags: dict[str, str], kind: str) -> dict[str, str]:
    start = _TEMPLATE + kind
    return {key.removeprefix(start): value for key, value in tags.items() if key.startswith(start)}


def _group_taints(group: NodeGroup) -> list[Taint]:
    """Return the node group's taints; one without a value is ignored (taint.Value != nil)."""
    taints = objects_in(group.members.get("taints"))
    return [
        Taint(str(item["key"]), str(item["value"]), EFFECTS[str(item["effect"])])
        for item in taints
        if item.get("value")
    ]


def _tagged_taints(group: NodeGroup) -> list[Taint]:
    """Return the taints of ASG tags, "value:Effect"; one without an effect is ignored."""
    parts = [(key, *value.rpartition(":")[::2]) for key, value in _tagged(group.asg_tags, "taint/").items()]
    return [Taint(key, value, effect) for key, value, effect in parts if effect in _EFFECTS]
