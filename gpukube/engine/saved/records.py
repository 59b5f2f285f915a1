"""Records of a saved plan as they are in the file, and its JSON Schema.

In scope: the format of the file, one class per object. Out of scope: where the values come from, and files.

msgspec checks a whole document against these classes, names the path of what does not match, and writes the JSON
Schema. The meaning of a field never changes within one `schemaVersion`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

KIND: Final = "SavedPlan"
SCHEMA_VERSION: Final = 1
_SCHEMA_ID: Final = "urn:gpukube:saved-plan:1"

Json = dict[str, object]
Mark = Annotated[int, Meta(ge=0)]


class SpecRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One spec as it was loaded, with defaults, --set and variables applied: no file or variable is read again."""

    names: Annotated[
        tuple[str, ...], Meta(min_length=1, description="Where it was written: the file, then --set arguments.")
    ]
    data: Annotated[object, Meta(description="The spec.")]
    marks: Annotated[
        tuple[Mark, ...],
        Meta(description="Positions of keys and values, packed, in the order of sorted keys; for messages."),
    ]
    spellings: Annotated[
        tuple[tuple[Mark, str], ...], Meta(description="Position and text as written, where the value differs.")
    ]


class OptionsRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The options that shaped the plan."""

    clusters: Annotated[tuple[str, ...], Meta(description="Globs of --cluster.")]
    pools: Annotated[tuple[str, ...], Meta(description="Globs of --pool.")]
    skip_cluster: Annotated[bool, Meta(description="Always false: a plan without the clusters' state is not saved.")]
    adopt: bool
    prune: bool
    replace: Annotated[str, Meta(description='"recreate", "surge", or "" for not at all.')]
    allow_disruption: bool
    chart: Annotated[str, Meta(description='Where the chart comes from; "" for NVIDIA\'s repository.')]
    migrate_release: bool = False
    adopt_release: bool = False
    adopt_from: Annotated[tuple[str, ...], Meta(description="Owners of --adopt-from.")] = ()
    adopt_managed: bool = False
    upgrade: Annotated[bool, Meta(description="Whether --upgrade was given.")] = False
    shard: Annotated[str, Meta(description='The part of the clusters, "3/16"; "" for all.')] = ""
    accept_loss: Annotated[
        tuple[str, ...], Meta(description="Arguments of --accept-loss: members that a replacement may lose.")
    ] = ()


class ChangeRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One field that differs; null is absent."""

    field: str
    old: object
    new: object
    kind: Literal["in-place", "disruptive", "replace", "refused"]


class RequestRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One call to the cloud, as planned."""

    service: str
    operation: str
    params: Json


class SightRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A live pool as the plan read it: it must be unchanged when the plan is applied."""

    name: Annotated[str, Meta(description="The cloud's name.")]
    state: Literal["ready", "busy", "failed", "deleting"]
    etag: Annotated[str, Meta(description='The cloud\'s version of the pool; "" if it has none.')]
    fields: Annotated[Json, Meta(description="Normalized fields, without numbers that an autoscaler changes.")]
    labels: dict[str, str]
    taints: tuple[str, ...]


class PoolRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What will happen to one pool."""

    pool: Annotated[str, Meta(description="Name in the spec.")]
    owner: str
    name: Annotated[str, Meta(description="The cloud's name.")]
    action: Literal["create", "update", "replace", "delete", "no-op", "adopt", "conflict", "standby"]
    changes: tuple[ChangeRecord, ...]
    requests: tuple[RequestRecord, ...]
    seen: Annotated[SightRecord | None, Meta(description="null if no pool was live.")]


class MarkRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A live pool of these owners that the specs do not declare and the plan does not touch."""

    name: str
    owner: str
    pool: str


class ValueRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One value of the chart that differs; null is absent."""

    path: str
    old: object
    new: object


class ReleaseRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What will happen to a release of the cluster."""

    action: Literal["install", "upgrade", "none", "conflict", "unknown"]
    name: str
    chart: str
    version: str
    revision: Annotated[int, Meta(description="Live revision that the plan was made from; 0 for none.")]
    values: Annotated[str, Meta(description="Digest of the values that the release will have.")]
    changes: tuple[ValueRecord, ...]
    digest: Annotated[str, Meta(description='Digest of the chart; "" for one that is not fetched.')] = ""


class RepairRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A label or taint of gpukube that will be restored on a node."""

    node: str
    pool: str
    field: str
    wanted: str
    live: Annotated[str | None, Meta(description="null if it is missing.")]


class ClusterRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One cluster: its identity, what was read, what will be done."""

    cluster: Annotated[str, Meta(description="Key in the spec.")]
    provider: str
    name: str
    identity: Annotated[dict[str, str], Meta(description="Account, subscription or project, and where.")]
    location: str
    kubernetes_version: str
    pools: tuple[PoolRecord, ...]
    undeclared: tuple[MarkRecord, ...]
    release: ReleaseRecord | None
    repairs: tuple[RepairRecord, ...]
    dra_release: Annotated[
        ReleaseRecord | None, Meta(description="The release of the DRA driver, beside the device plugin's.")
    ] = None
    orders: Annotated[
        dict[str, str], Meta(description="Objects with orders of alternatives that will be written, and their text.")
    ] = {}  # msgspec copies it


class PlanRecord(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A plan of gpukube, saved to be applied exactly or not at all."""

    kind: Literal["SavedPlan"]
    schema_version: Annotated[int, Meta(ge=1, le=1)]
    gpukube_version: str
    created: Annotated[str, Meta(description="RFC 3339, UTC.")]
    sandbox: Annotated[bool, Meta(description="Made against the emulated clouds.")]
    endpoints: Annotated[dict[str, str], Meta(description="Provider to the host used instead of the cloud's own.")]
    chart_digest: Annotated[str, Meta(description='Digest of a local chart; "" for one that is pulled.')]
    options: OptionsRecord
    specs: Annotated[tuple[SpecRecord, ...], Meta(min_length=1)]
    clusters: tuple[ClusterRecord, ...]
    checksum: Annotated[
        str,
        Meta(
            pattern="^sha256:[0-9a-f]{64}$",
            description="Over everything else, as JSON with sorted keys and without spaces. Not a signature.",
        ),
    ]


def schema() -> dict[str, object]:
    """Return the JSON Schema of the file."""
    made = msgspec.json.schema(PlanRecord, schema_hook=_anything)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": _SCHEMA_ID, "title": KIND, **made}


def _anything(kind: type) -> dict[str, object]:
    """Return the schema of values that are any JSON.

    Raises:
        NotImplementedError: The type is not one of this module.
    """
    if kind is object:
        return {"description": "Any JSON."}
    raise NotImplementedError(kind)
