"""The shape of what `gpukube doctor --print-policy` prints."""

from __future__ import annotations

from typing import Literal, TypedDict


class PermissionPart(TypedDict):
    """One permission of a policy."""

    name: str
    """As the cloud writes it; of Kubernetes, verbs and resource."""
    calls: list[str]
    """Operations that need it."""
    purpose: str
    """What gpukube does by it."""
    level: Literal["plan", "apply"]
    """plan: for reading; apply: for changes."""
    when: str
    """Which specs or command lines need it; empty for all."""
    without: str
    """What is different without it; empty where the command fails."""
    source: str
    """Public source."""


class PolicyPart(TypedDict):
    """One policy: a file, and where it belongs."""

    cloud: str
    """Name of the provider, or kubernetes."""
    place: str
    """Account, subscription, project or cluster."""
    title: str
    """What it is."""
    clusters: list[str]
    """Keys of the clusters that it covers."""
    file: str
    """Name that --out gives to its file."""
    documents: list[dict[str, object]]
    """What the file holds."""
    commands: list[str]
    """Lines of a shell that hand the file to the cloud and grant it; IDENTITY stands for whom."""
    permissions: list[PermissionPart]
    """What it allows, and why."""
    notes: list[str]
    """What it does not cover, or covers more widely than gpukube needs."""


class PermissionsDocument(TypedDict):
    """The policies that specs need."""

    schemaVersion: Literal[1]
    """Changes when the meaning of a key does."""
    kind: Literal["Permissions"]
    """Of this document."""
    level: Literal["plan", "apply"]
    """plan: commands that only read; apply: those that change something too."""
    extras: list[str]
    """Further command lines that are allowed: live-prices, upgrade, probe, migrate-release, catalog."""
    directory: str
    """Where --out wrote the files; empty for nowhere."""
    policies: list[PolicyPart]
    """Each policy."""
