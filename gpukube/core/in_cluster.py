"""What a cloud puts into its clusters, as data: marks on nodes, and device plugins of its own.

A provider gives one `InClusterFacts` as its member `in_cluster`. In scope: its shape. Out of scope: any cloud,
and looking for these signs (gpukube.cluster, gpukube.doctor).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginDaemonSet:
    """A device plugin that a cloud runs as DaemonSets.

    Attributes:
        kind: In one word, as documents name it.
        app: Value of the label k8s-app of its DaemonSets.
        keep: What to write so that it advertises; {name} and {namespace} are those of the DaemonSet.
        remove: What to do so that it does not.
    """

    kind: str
    app: str
    keep: str
    remove: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlugin:
    """A device plugin that a cloud's nodes run themselves, without a DaemonSet; any of the signs is enough.

    Attributes:
        kind: In one word, as documents name it.
        title: For people.
        label: Key and value of a label of nodes that run it; None where none tells.
        condition: Condition of nodes that run it; "" where none tells.
        os_image: Beginning of the name of the node image that carries it, if the node advertises devices; "" where none
            tells.
        keep: What to write so that it advertises.
        remove: What to do so that it does not.
    """

    kind: str
    title: str
    label: tuple[str, str] | None = None
    condition: str = ""
    os_image: str = ""
    keep: str
    remove: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaler:
    """What has to run in the clusters of a cloud that leaves scaling to them.

    Attributes:
        program: Name of its program, with which its image begins.
        why: Why the pools do not scale without it.
        advice: What to do.
        install: Command that installs it; {name} is the cluster's, other words in braces are fields of the cluster.
    """

    program: str
    why: str
    advice: str
    install: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeSubject:
    """How whoever calls the cloud is known to the RBAC of its clusters.

    Attributes:
        kind: Of the subject of a binding: User or Group.
        name: Its name; IDENTITY for one that has to be filled in.
        note: What to fill in.
        commands: What makes an identity of the cloud that user.

    {level} stands for what the roles are for, other words in braces for fields of the cluster.
    """

    kind: str = "User"
    name: str = "IDENTITY"
    note: str = "replace IDENTITY by the name of the user in the cluster"
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InClusterFacts:
    """What a cloud puts into its clusters.

    Attributes:
        pool_label: Node label that holds the cloud's name of the pool; "" where our marks alone tell.
        gpu_labels: Node labels that mark nodes with GPUs -> the value that they must have, "" for any.
        label_domains: Beginnings of labels that the cloud may put on a node that does not exist yet.
        label_keys: Whole keys of such labels.
        conditions: Conditions of the cloud's that are False on a node that is well.
        plugin: Its device plugin; None where it brings none as a DaemonSet.
        driver_app: Value of the label k8s-app of its driver installer; "" where it has none.
        node_plugins: Device plugins of its nodes.
        scaler: What must run in a cluster so that its autoscaled pools scale; None where the cloud scales them itself.
        subject: How an identity of the cloud is known to Kubernetes RBAC.
    """

    pool_label: str = ""
    gpu_labels: Mapping[str, str] = field(default_factory=dict)
    label_domains: tuple[str, ...] = ()
    label_keys: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    plugin: PluginDaemonSet | None = None
    driver_app: str = ""
    node_plugins: tuple[NodePlugin, ...] = ()
    scaler: Scaler | None = None
    subject: KubeSubject = KubeSubject()
