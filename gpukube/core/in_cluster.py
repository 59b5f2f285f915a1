"""What a cloud adds to its clusters, as data: node labels and its own device plugins.

A provider has one `InClusterFacts` as its member `in_cluster`. In scope: its shape. Out of scope: any cloud, and
searching for these signs (gpukube.cluster, gpukube.doctor).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.fabric import FabricPart


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginDaemonSet:
    """A device plugin that a cloud runs as DaemonSets.

    Attributes:
        kind: Its kind in documents, one word.
        app: Value of the label k8s-app of its DaemonSets.
        keep: What to write so that it advertises; {name} and {namespace} are those of the DaemonSet.
        remove: What to do so that it does not advertise.
    """

    kind: str
    app: str
    keep: str
    remove: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlugin:
    """A device plugin that runs on a cloud's nodes without a DaemonSet; any of the signs identifies it.

    Attributes:
        kind: Its kind in documents, one word.
        title: Human-readable name.
        label: Key and value of a label of nodes that run it; None if there is none.
        condition: Condition of nodes that run it; "" if there is none.
        os_image: Prefix of the name of the node image that includes it, if the node advertises devices; "" if there is
            none.
        keep: What to write so that it advertises.
        remove: What to do so that it does not advertise.
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
    """The autoscaler that must run in a cluster if the cloud does not scale pools itself.

    Attributes:
        program: Name of the program; its image name starts with it.
        why: Why the pools do not scale without it.
        advice: What to do.
        install: Command that installs it; {name} is the cluster's name, other words in braces are its fields.
    """

    program: str
    why: str
    advice: str
    install: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeSubject:
    """The RBAC subject in clusters for the identity that calls the cloud.

    Attributes:
        kind: Kind of the subject of a binding: User or Group.
        name: Its name; IDENTITY as a placeholder.
        note: What to fill in.
        commands: Commands that map an identity of the cloud to that user.

    {level} is the purpose of the roles; other words in braces are fields of the cluster.
    """

    kind: str = "User"
    name: str = "IDENTITY"
    note: str = "replace IDENTITY by the name of the user in the cluster"
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InClusterFacts:
    """What a cloud adds to its clusters.

    Attributes:
        pool_label: Node label with the cloud's name of the pool; "" if only gpukube's marks identify it.
        gpu_labels: Node labels of nodes with GPUs -> the required value, "" for any.
        label_domains: Prefixes of labels that the cloud may set on future nodes.
        label_keys: Complete keys of such labels.
        conditions: The cloud's own conditions that are False on a healthy node.
        plugin: Its device plugin; None if it runs none as a DaemonSet.
        driver_app: Value of the label k8s-app of its driver installer; "" if there is none.
        driver_manifests: Where it does not install the driver for the DRA driver: node image of the spec, "" for any
            other, -> address of the installer's manifest.
        node_plugins: Device plugins on its nodes.
        fabric_parts: What the fast networks of its nodes need in a cluster, whoever installs it.
        scaler: What must run in a cluster so that its autoscaled pools scale; None if the cloud scales them itself.
        subject: RBAC subject of an identity of the cloud.
    """

    pool_label: str = ""
    gpu_labels: Mapping[str, str] = field(default_factory=dict)
    label_domains: tuple[str, ...] = ()
    label_keys: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    plugin: PluginDaemonSet | None = None
    driver_app: str = ""
    driver_manifests: Mapping[str, str] = field(default_factory=dict)
    node_plugins: tuple[NodePlugin, ...] = ()
    fabric_parts: tuple[FabricPart, ...] = ()
    scaler: Scaler | None = None
    subject: KubeSubject = KubeSubject()
