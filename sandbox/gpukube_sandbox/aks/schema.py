"""Properties of an agent pool: type, choices, API version, and whether a change needs a new pool.

In scope: the table and the check of a body against it. Out of scope: rules across properties (`rules`).

Sources: the models of azure-mgmt-containerservice 41.8.0 and 41.9.0b1 for names and types; for what may change in place
Sources: the models of azure-mgmt-containerservice 41.8.0 and 41.9.0b1 for names and types; for in-place changes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube_sandbox.aks.answers import Json, aks_error, bad_parameter
from gpukube_sandbox.aks.versions import PREVIEW_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["string", "integer", "number", "boolean", "strings", "map", "object", "list"]

_GO_TYPES: dict[Kind, str] = {
    "string": "string", "integer": "int32", "number": "float64", "boolean": "bool", "strings": "[]string",
    "map": "map[string]string", "object": "struct", "list": "[]struct",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One property.

    Attributes:
        kind: JSON type.
        choices: Allowed values, compared as written; () for any.
        immutable: Whether a change is rejected with PropertyChangeNotAllowed.
        stable: First stable API version with the property; "" = all versions here, "-" = none.
        preview: First preview API version with the property; "" = all versions here.
        fields: Nested properties; empty = contents are stored unchecked.
    """

    kind: Kind
    choices: tuple[str, ...] = ()
    immutable: bool = False
    stable: str = ""
    preview: str = ""
    fields: tuple[tuple[str, Field], ...] = ()

    def is_offered(self, api_version: str) -> bool:
        """Return whether an API version has the property."""
        if api_version.endswith(PREVIEW_SUFFIX):
            return api_version >= self.preview
        return self.stable != "-" and api_version >= self.stable


def _choice(*choices: str, immutable: bool = False, stable: str = "", preview: str = "") -> Field:
    return Field("string", choices, immutable=immutable, stable=stable, preview=preview)


def _fixed(kind: Kind) -> Field:
    return Field(kind, immutable=True)


MIG_VALUES = ("MIG1g", "MIG2g", "MIG3g", "MIG4g", "MIG7g")

_NVIDIA = (
    ("managementMode", _choice("Unmanaged", "Managed", immutable=True)),
    ("migStrategy", _choice("None", "Single", "Mixed", immutable=True, stable="-")),
    ("migProfiles", Field("strings", immutable=True, stable="-", preview="2026-08-02-preview")),
    ("driverMode", _choice("DevicePlugin", "DRA", immutable=True, stable="-", preview="2026-08-02-preview")),
)
_GPU_PROFILE = (
    ("driver", _choice("Install", "None", immutable=True)),
    ("driverType", _choice("GRID", "CUDA", immutable=True, stable="-")),
    ("nvidia", Field("object", fields=_NVIDIA, stable="2026-08-01", preview="2026-01-02-preview")),
)
_UPGRADE = (
    ("maxSurge", Field("string")),
    ("maxUnavailable", Field("string")),
    ("drainTimeoutInMinutes", Field("integer")),
    ("nodeSoakDurationInMinutes", Field("integer")),
    ("undrainableNodeBehavior", _choice("Cordon", "Schedule")),
)
_SECURITY = (
    ("enableVTPM", Field("boolean")),
    ("enableSecureBoot", Field("boolean")),
    ("sshAccess", _choice("LocalUser", "Disabled", "EntraId")),
)
_NETWORK = (
    ("nodePublicIPTags", Field("list")),
    ("allowedHostPorts", Field("list")),
    ("applicationSecurityGroups", Field("strings")),
    ("dranet", Field("object", fields=(("mode", _choice("Unmanaged", "Managed")),), stable="2026-08-01")),
)
_LOCAL_DNS = (
    ("mode", _choice("Preferred", "Required", "Disabled")),
    ("state", _choice("Enabled", "Disabled")),
    ("vnetDNSOverrides", Field("object")),
    ("kubeDNSOverrides", Field("object")),
)
_OS_SKUS = (
    "Ubuntu", "Ubuntu2204", "Ubuntu2404", "AzureLinux", "AzureLinux3", "AzureContainerLinux", "CBLMariner",
    "Windows2019", "Windows2022", "Windows2025",
)  # fmt: skip

FIELDS: dict[str, Field] = {
    "count": Field("integer"),
    "vmSize": _fixed("string"),
    "type": _choice("VirtualMachineScaleSets", "AvailabilitySet", "VirtualMachines", immutable=True),
    "mode": _choice("System", "User", "Gateway"),
    "osType": _choice("Linux", "Windows", immutable=True),
    "osSKU": _choice(*_OS_SKUS),  # only among the Ubuntu ones and among the Azure Linux ones: rules
    "gpuInstanceProfile": _choice(*MIG_VALUES, immutable=True),
    "gpuProfile": Field("object", fields=_GPU_PROFILE, stable="2025-02-01"),
    "enableAutoScaling": Field("boolean"),
    "minCount": Field("integer"),
    "maxCount": Field("integer"),
    "scaleDownMode": _choice("Delete", "Deallocate"),
    "scaleSetPriority": _choice("Regular", "Spot", immutable=True),
    "scaleSetEvictionPolicy": _choice("Delete", "Deallocate", immutable=True),
    "spotMaxPrice": _fixed("number"),
    "nodeLabels": Field("map"),
    "nodeTaints": Field("strings"),
    "nodeInitializationTaints": Field("strings", stable="-"),
    "tags": Field("map"),
    "maxPods": _fixed("integer"),
    "availabilityZones": _fixed("strings"),
    "osDiskType": _choice("Managed", "Ephemeral", immutable=True),
    "osDiskSizeGB": _fixed("integer"),
    "kubeletDiskType": _choice("OS", "Temporary", immutable=True),
    "capacityReservationGroupID": _fixed("string"),
    "hostGroupID": _fixed("string"),
    "proximityPlacementGroupID": _fixed("string"),
    "vnetSubnetID": _fixed("string"),
    "podSubnetID": _fixed("string"),
    "podIPAllocationMode": _choice("DynamicIndividual", "StaticBlock", immutable=True, stable="2025-08-01"),
    "nodePublicIPPrefixID": _fixed("string"),
    "enableNodePublicIP": _fixed("boolean"),
    "enableEncryptionAtHost": _fixed("boolean"),
    "enableUltraSSD": _fixed("boolean"),
    "kubeletConfig": _fixed("object"),
    "linuxOSConfig": _fixed("object"),
    "creationData": _fixed("object"),
    "enableFIPS": Field("boolean"),
    "securityProfile": Field("object", fields=_SECURITY),
    "upgradeSettings": Field("object", fields=_UPGRADE),
    "orchestratorVersion": Field("string"),
    "nodeImageVersion": Field("string"),
    "powerState": Field("object", fields=(("code", _choice("Running", "Stopped")),)),
    "workloadRuntime": _choice("OCIContainer", "WasmWasi", "KataVmIsolation"),
    "messageOfTheDay": _fixed("string"),
    "networkProfile": Field("object", fields=_NETWORK),
    "localDNSProfile": Field("object", stable="2025-08-01", fields=_LOCAL_DNS),
    "artifactStreamingProfile": Field("object", stable="2026-01-01", fields=(("enabled", Field("boolean")),)),
    "virtualMachinesProfile": Field("object", stable="2025-04-01"),
    "gatewayProfile": Field("object", stable="2025-05-01"),
    "windowsProfile": Field("object"),
    "virtualMachineNodesStatus": Field("list", stable="2025-04-01"),
    "status": Field("object", stable="2025-04-01"),
    "eTag": Field("string"),
    "currentOrchestratorVersion": Field("string"),
    "provisioningState": Field("string"),
}

READ_ONLY = frozenset({
    "eTag", "currentOrchestratorVersion", "provisioningState", "status", "virtualMachineNodesStatus",
})  # fmt: skip
"""Properties that the service sets whatever a body contains: a read-modify-write returns some of them."""

GONE_WHEN_OMITTED = frozenset({"nodeLabels", "nodeTaints", "tags", "minCount", "maxCount"})
"""Properties that every PUT replaces as a whole (Azure/AKS#3152 for labels and taints); that omitting the key clears
them is unconfirmed, the sandbox is strict. Other properties that a PUT omits keep their value here (unconfirmed)."""

ENVELOPE = frozenset({"properties", "id", "name", "type", "systemData"})


def immutable_fields() -> tuple[str, ...]:
    """List the wire paths under `properties` whose change needs a new pool, nested ones with dots."""
    return tuple(_immutable(FIELDS.items(), ""))


def _immutable(fields: Iterable[tuple[str, Field]], prefix: str) -> list[str]:
    found: list[str] = []
    for name, field in fields:
        if field.immutable:
            found.append(prefix + name)
        found += _immutable(field.fields, f"{prefix}{name}.")
    return found


def check_shape(body: object, api_version: str, stored: Json) -> Json:
    """Check names, types, and choices of a PUT body; return its `properties` without nulls.

    A property that this API version does not have is rejected unless the pool already has it: the result of a read may
    be sent back.

    Raises:
        ArmError: 400 UnmarshalError for names and types (message seen in Azure/azure-rest-api-specs#40740 for unknown
            names, Azure/AKS#1402 for types), 400 InvalidParameter for values outside the choices.
    """
    if not isinstance(body, dict):
        raise _unmarshal("json: cannot unmarshal body into Go value of type AgentPool")
    for key in body:
        if key not in ENVELOPE:
            raise _unknown(key)
    properties = body.get("properties") or {}
    if not isinstance(properties, dict):
        raise _wrong_type("properties", properties, "object")
    return _check_object(properties, FIELDS, "", api_version, stored)


def _check_object(value: Json, fields: dict[str, Field], path: str, api_version: str, stored: Json) -> Json:
    kept: Json = {}
    for key, item in value.items():
        field = fields.get(key)
        if field is None or not field.is_offered(api_version):
            if key not in stored:
                raise _unknown(key)
            kept[key] = item
        elif item is not None:  # null and absent are the same to the service's decoder
            below = stored.get(key)
            kept[key] = _check_value(item, field, path + key, api_version, below if isinstance(below, dict) else {})
    return kept


def _check_value(value: object, field: Field, path: str, api_version: str, stored: Json) -> object:
    if not _has_kind(value, field.kind):
        raise _wrong_type(f"properties.{path}", value, field.kind)
    if field.choices and value not in field.choices:
        if path == "osSKU":  # Azure/azure-cli#24966
            raise aks_error("InvalidOSSKU", f"OSSKU='{value}' is invalid, details: Unrecognized OSSKU")
        choices = ", ".join(field.choices)
        # The message is unconfirmed; code and target as in cluster-api-provider-azure#5947 for count.
        message = f"The value of parameter agentPoolProfile.{path} is invalid: '{value}'. Allowed values: {choices}."
        raise bad_parameter(message, f"agentPoolProfile.{path}")
    if field.fields and isinstance(value, dict):
        return _check_object(value, dict(field.fields), f"{path}.", api_version, stored)
    return value


def _has_kind(value: object, kind: Kind) -> bool:
    match kind:
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "strings":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "map":
            return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
        case "object":
            return isinstance(value, dict)
        case "list":
            return isinstance(value, list)
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)


def _json_name(value: object) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _wrong_type(path: str, value: object, kind: Kind) -> Exception:
    text = (
        f"json: cannot unmarshal {_json_name(value)} into Go struct field Properties.{path} of type {_GO_TYPES[kind]}"
    )
    return _unmarshal(text)


def _unknown(key: str) -> Exception:
    return _unmarshal(
        f'json: unknown field "{key}" Check that the field is in the right location, is spelled correctly, and is '
        "supported in the API version. Visit aka.ms/aks/apiversions for more API version information."
    )


def _unmarshal(text: str) -> Exception:
    return aks_error("UnmarshalError", f"UnmarshalEntity encountered error: {text}.")
