"""The shape of the document of `gpukube doctor --print-policy`."""

from __future__ import annotations

from typing import Literal, TypedDict


class PermissionPart(TypedDict):
    """One permission of a policy."""

    name: str
    """Permission as the cloud spells it; for Kubernetes, verbs and resource."""
    calls: list[str]
    """Operations that need it."""
    purpose: str
    """What gpukube uses it for."""
    level: Literal["plan", "apply"]
    """plan: reading; apply: changes."""
    when: str
    """Which specs or command lines need it; empty for all."""
    without: str
    """What is different without it; empty if the command fails."""
    source: str
    """Public source."""


class PolicyPart(TypedDict):
    """One policy: a file, and what it applies to."""

    cloud: str
    """Name of the provider, or kubernetes."""
    place: str
    """Account, subscription, project or cluster."""
    title: str
    """What it covers."""
    clusters: list[str]
    """Keys of the clusters that it covers."""
    file: str
    """Name of its file with --out."""
    documents: list[dict[str, object]]
    """Content of the file."""
    commands: list[str]
    """Shell commands that create and grant it; replace IDENTITY with the recipient."""
    permissions: list[PermissionPart]
    """What it allows, and why."""
    notes: list[str]
    """What it does not cover, or covers more broadly than gpukube needs."""


class PermissionsDocument(TypedDict):
    """The policies that specs need."""

    schemaVersion: Literal[1]
    """Changes if the meaning of a key changes."""
    kind: Literal["Permissions"]
    """Kind of this document."""
    level: Literal["plan", "apply"]
    """plan: commands that only read; apply: commands that also change something."""
    extras: list[str]
    """Additional commands that are allowed: live-prices, upgrade, probe, migrate-release, catalog, capacity,
    alternatives."""
    directory: str
    """Directory of the files of --out; empty without it."""
    policies: list[PolicyPart]
    """Each policy."""
