"""How the parts of a type merge: list keys, atomic maps, and patch strategies.

In scope: the metadata that Kubernetes publishes about fields of its types, and navigating it. Out of scope: merging
(`strategic`, `apply`), the fields (`schema`).

Source: x-kubernetes-patch-strategy, -patch-merge-key, -list-type, -list-map-keys and -map-type in /openapi/v3 of
Kubernetes 1.36; a test compares the tables with a real server. For custom types: the schema of their definition.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args, get_origin

from gpukube_sandbox.kube.store.schema import field_hints, model_of, required_hint

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject

_WITH_CONDITIONS = (
    "DaemonSet",
    "Deployment",
    "Job",
    "Namespace",
    "Node",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "ReplicationController",
    "Service",
    "StatefulSet",
)

PATCHES: dict[tuple[str, str], tuple[str, str]] = {
    ("ComponentStatus", "conditions"): ("merge", "type"),
    ("Container", "env"): ("merge", "name"),
    ("Container", "ports"): ("merge", "containerPort"),
    ("Container", "volumeDevices"): ("merge", "devicePath"),
    ("Container", "volumeMounts"): ("merge", "mountPath"),
    ("ContainerStatus", "volumeMounts"): ("merge", "mountPath"),
    ("ContainerStatus", "allocatedResourcesStatus"): ("merge", "name"),
    ("DeploymentSpec", "strategy"): ("retainKeys", ""),
    ("EphemeralContainer", "env"): ("merge", "name"),
    ("EphemeralContainer", "ports"): ("merge", "containerPort"),
    ("EphemeralContainer", "volumeDevices"): ("merge", "devicePath"),
    ("EphemeralContainer", "volumeMounts"): ("merge", "mountPath"),
    ("NodeSpec", "podCIDRs"): ("merge", ""),
    ("NodeStatus", "addresses"): ("merge", "type"),
    ("ObjectMeta", "finalizers"): ("merge", ""),
    ("ObjectMeta", "ownerReferences"): ("merge", "uid"),
    ("PodDisruptionBudgetSpec", "selector"): ("replace", ""),
    ("PodSpec", "containers"): ("merge", "name"),
    ("PodSpec", "ephemeralContainers"): ("merge", "name"),
    ("PodSpec", "hostAliases"): ("merge", "ip"),
    ("PodSpec", "imagePullSecrets"): ("merge", "name"),
    ("PodSpec", "initContainers"): ("merge", "name"),
    ("PodSpec", "resourceClaims"): ("merge,retainKeys", "name"),
    ("PodSpec", "schedulingGates"): ("merge", "name"),
    ("PodSpec", "topologySpreadConstraints"): ("merge", "topologyKey"),
    ("PodSpec", "volumes"): ("merge,retainKeys", "name"),
    ("PodStatus", "hostIPs"): ("merge", "ip"),
    ("PodStatus", "podIPs"): ("merge", "ip"),
    ("PodStatus", "resourceClaimStatuses"): ("merge,retainKeys", "name"),
    ("ResourceClaimStatus", "reservedFor"): ("merge", "uid"),
    ("ServiceAccount", "secrets"): ("merge", "name"),
    ("ServiceSpec", "ports"): ("merge", "port"),
    **{(f"{kind}Status", "conditions"): ("merge", "type") for kind in _WITH_CONDITIONS},
}
"""Type and field -> strategy and merge key of a strategic merge patch; other lists are replaced as a whole."""

LIST_KEYS: dict[tuple[str, str], tuple[str, ...]] = {
    **{place: (key,) for place, (strategy, key) in PATCHES.items() if key},
    ("AllocatedDeviceStatus", "conditions"): ("type",),
    ("Container", "ports"): ("containerPort", "protocol"),
    ("EphemeralContainer", "ports"): ("containerPort", "protocol"),
    ("JobStatus", "conditions"): (),
    ("PodSpec", "topologySpreadConstraints"): ("topologyKey", "whenUnsatisfiable"),
    ("PodStatus", "hostIPs"): (),
    ("ResourceClaimStatus", "devices"): ("driver", "device", "pool", "shareID"),
    ("ResourceRequirements", "claims"): ("name",),
    ("ResourceStatus", "resources"): ("resourceID",),
    ("ServiceSpec", "ports"): ("port", "protocol"),
}
"""Type and field -> keys of a list's items in server-side apply; if empty or missing, the list is atomic."""

SETS = frozenset(
    {
        ("ContainerRestartRuleOnExitCodes", "values"),
        ("NodeAllocatableResourceClaimStatus", "containers"),
        ("NodeSpec", "podCIDRs"),
        ("ObjectMeta", "finalizers"),
        ("PodFailurePolicyOnExitCodesRequirement", "values"),
        ("UncountedTerminatedPods", "failed"),
        ("UncountedTerminatedPods", "succeeded"),
    }
)
"""Lists of scalars whose items are owned individually."""

ATOMIC_TYPES = frozenset(
    {
        "ConfigMapKeySelector",
        "EndpointAddress",
        "EndpointPort",
        "FileKeySelector",
        "LabelSelector",
        "LocalObjectReference",
        "NodeSelector",
        "NodeSelectorTerm",
        "ObjectFieldSelector",
        "ObjectReference",
        "OwnerReference",
        "ResourceFieldSelector",
        "RoleRef",
        "ScopeSelector",
        "SecretKeySelector",
        "SecretReference",
        "ServiceBackendPort",
        "Subject",
        "TypedLocalObjectReference",
    }
)
"""Atomic types: a single owner owns all of their fields."""

MAPS = {
    ("PersistentVolumeClaimStatus", "allocatedResourceStatuses"): "granular",
    ("PersistentVolumeSpec", "claimRef"): "granular",
    ("PodSpec", "nodeSelector"): "atomic",
    ("ReplicationControllerSpec", "selector"): "atomic",
    ("Scheduling", "nodeSelector"): "atomic",
    ("ServiceSpec", "selector"): "atomic",
}
"""Map fields whose ownership differs from their type's, or whose type has no class."""

_KEY_DEFAULTS = {"protocol": "TCP"}
"""Defaults of absent keys in `LIST_KEYS`; only protocol has one."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of a value at one place in a type.

    Attributes:
        hint: A type hint of the models, a schema of a custom type's definition, or None if unknown.
        keys: Keys that identify a list's items.
        is_set: A list of scalars that are identified by value.
        is_atomic: A map with a single owner. (A list is atomic unless it has keys or is a set.)
        strategies: Strategies of a strategic merge patch.
        merge_key: Merge key of a strategic merge patch.
    """

    hint: Any = None
    keys: tuple[str, ...] = ()
    is_set: bool = False
    is_atomic: bool = False
    strategies: tuple[str, ...] = ()
    merge_key: str = ""

    @property
    def is_atomic_list(self) -> bool:
        """Whether a list at this place is atomic."""
        return not self.keys and not self.is_set

    def declares(self, field: str) -> bool:
        """Return whether the type names this field; a map with free keys names none."""
        if isinstance(self.hint, dict):
            return field in (self.hint.get("properties") or {})
        return _is_model(self.hint) and field in field_hints(self.hint)

    def field(self, name: str) -> Structure:
        """Return the structure of a field, or of a map value."""
        if isinstance(self.hint, dict):
            below = (self.hint.get("properties") or {}).get(name) or self.hint.get("additionalProperties")
            return _of_schema(below)
        if _is_model(self.hint) and name in field_hints(self.hint):
            return _of_field(self.hint, name)
        return _UNKNOWN

    def item(self) -> Structure:
        """Structure of a list's items."""
        if isinstance(self.hint, dict):
            return _of_schema(self.hint.get("items"))
        return _of_hint(get_args(self.hint)[0]) if get_origin(self.hint) is list else _UNKNOWN

    def key_of(self, item: JsonObject) -> dict[str, object]:
        """Return the key values that identify a list item, sorted by key name."""
        values = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in sorted(self.keys)}
        return {key: value for key, value in values.items() if value is not None}


_UNKNOWN = Structure()


def structure_of(kind: Kind, definition: JsonObject | None = None) -> Structure:
    """Return the structure of a type.

    Args:
        kind: The type.
        definition: CustomResourceDefinition of a custom type.
    """
    model = None if kind.custom else model_of(kind.group, kind.kind)
    if model:
        return _of_hint(model)
    versions = ((definition or {}).get("spec") or {}).get("versions") or ()
    schemas = [(item.get("schema") or {}).get("openAPIV3Schema") for item in versions if item["name"] == kind.version]
    found: JsonObject = (schemas[0] if schemas else None) or {}
    pod: Any = model_of("", "Pod")
    return Structure(
        {**found, "properties": {**(found.get("properties") or {}), "metadata": _of_field(pod, "metadata")}}
    )


def _is_model(hint: Any) -> bool:  # noqa: ANN401 -- any type hint
    return isinstance(hint, type) and hasattr(hint, "from_dict")


@functools.cache
def _of_field(model: type, field: str) -> Structure:
    place = (model.__name__, field)
    strategies, merge_key = PATCHES.get(place, ("", ""))
    plain = _of_hint(field_hints(model)[field])
    return Structure(
        plain.hint,
        keys=LIST_KEYS.get(place, ()),
        is_set=place in SETS,
        is_atomic=MAPS[place] == "atomic" if place in MAPS else plain.is_atomic,
        strategies=tuple(strategies.split(",")) if strategies else (),
        merge_key=merge_key,
    )


def _of_hint(hint: Any) -> Structure:  # noqa: ANN401 -- any type hint
    hint = required_hint(hint)
    if hint is dict:  # a map with free keys, not a class with fields
        return _UNKNOWN
    return Structure(hint, is_atomic=_is_model(hint) and hint.__name__ in ATOMIC_TYPES)


def _of_schema(schema: object) -> Structure:
    if isinstance(schema, Structure):
        return schema
    if not isinstance(schema, dict):
        return _UNKNOWN
    return Structure(
        schema,
        keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        is_set=schema.get("x-kubernetes-list-type") == "set",
        is_atomic=schema.get("x-kubernetes-map-type") == "atomic",
    )


def without_omitted(value: Any, structure: Structure) -> Any:  # noqa: ANN401 -- any JSON value
    """Return a value without what Go omits for built-in types: empty lists and empty maps with free keys."""
    if isinstance(value, list):
        return [without_omitted(item, structure.item()) for item in value]
    if not isinstance(value, dict):
        return value
    tidy = {key: without_omitted(item, structure.field(key)) for key, item in value.items()}
    if not isinstance(structure.hint, type):
        return tidy
    return {key: item for key, item in tidy.items() if item or not _is_omitted(item, structure.field(key))}


def _is_omitted(value: Any, structure: Structure) -> bool:  # noqa: ANN401 -- any JSON value
    return isinstance(value, list) or (isinstance(value, dict) and structure.hint is None)
