"""Decodes the protobuf bodies that client-go sends for built-in types.

In scope: the envelope and a table of the messages that Helm and kubectl send; of pods, only the fields that
`kubectl create` sets. Out of scope: encoding; responses are JSON, which every client accepts.

Source: k8s.io/apimachinery runtime/serializer/protobuf; the generated.proto files of k8s.io/api.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.problems import bad_request, unsupported_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_Fields = dict[int, tuple[str, str]]
"""Field number -> JSON name and type; "*" repeats, "map:" maps strings to that type, other names are messages.

If the name is empty, the message's fields belong to the enclosing message."""

_MESSAGES: dict[str, _Fields] = {
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        7: ("generation", "int"),
        8: ("creationTimestamp", "time"),
        9: ("deletionTimestamp", "time"),
        10: ("deletionGracePeriodSeconds", "int"),
        11: ("labels", "map:string"),
        12: ("annotations", "map:string"),
        13: ("ownerReferences", "*OwnerReference"),
        14: ("finalizers", "*string"),
    },
    "OwnerReference": {
        1: ("kind", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        5: ("apiVersion", "string"),
        6: ("controller", "bool"),
        7: ("blockOwnerDeletion", "bool"),
    },
    "Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "map:bytes"),
        3: ("type", "string"),
        4: ("stringData", "map:string"),
        5: ("immutable", "bool"),
    },
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "map:string"),
        3: ("binaryData", "map:bytes"),
        4: ("immutable", "bool"),
    },
    "Namespace": {1: ("metadata", "ObjectMeta")},
    "ServiceAccount": {1: ("metadata", "ObjectMeta")},
    "ResourceQuota": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ResourceQuotaSpec")},
    "ResourceQuotaSpec": {1: ("hard", "map:quantity"), 2: ("scopes", "*string"), 3: ("scopeSelector", "ScopeSelector")},
    "ScopeSelector": {1: ("matchExpressions", "*ScopedRequirement")},
    "ScopedRequirement": {1: ("scopeName", "string"), 2: ("operator", "string"), 3: ("values", "*string")},
    "PodDisruptionBudget": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodDisruptionBudgetSpec")},
    "PodDisruptionBudgetSpec": {
        1: ("minAvailable", "int-or-string"),
        2: ("selector", "LabelSelector"),
        3: ("maxUnavailable", "int-or-string"),
        4: ("unhealthyPodEvictionPolicy", "string"),
    },
    "PriorityClass": {
        1: ("metadata", "ObjectMeta"),
        2: ("value", "int"),
        3: ("globalDefault", "bool"),
        4: ("description", "string"),
        5: ("preemptionPolicy", "string"),
    },
    "CronJob": {1: ("metadata", "ObjectMeta"), 2: ("spec", "CronJobSpec")},
    "CronJobSpec": {
        1: ("schedule", "string"),
        2: ("startingDeadlineSeconds", "int"),
        3: ("concurrencyPolicy", "string"),
        4: ("suspend", "bool"),
        5: ("jobTemplate", "JobTemplateSpec"),
        6: ("successfulJobsHistoryLimit", "int"),
        7: ("failedJobsHistoryLimit", "int"),
        8: ("timeZone", "string"),
    },
    "JobTemplateSpec": {1: ("metadata", "ObjectMeta"), 2: ("spec", "JobSpec")},
    "Ingress": {1: ("metadata", "ObjectMeta"), 2: ("spec", "IngressSpec")},
    "IngressSpec": {
        1: ("defaultBackend", "IngressBackend"),
        2: ("tls", "*IngressTLS"),
        3: ("rules", "*IngressRule"),
        4: ("ingressClassName", "string"),
    },
    "IngressTLS": {1: ("hosts", "*string"), 2: ("secretName", "string")},
    "IngressRule": {1: ("host", "string"), 2: ("", "IngressRuleValue")},
    "IngressRuleValue": {1: ("http", "HTTPIngressRuleValue")},
    "HTTPIngressRuleValue": {1: ("paths", "*HTTPIngressPath")},
    "HTTPIngressPath": {1: ("path", "string"), 2: ("backend", "IngressBackend"), 3: ("pathType", "string")},
    "IngressBackend": {3: ("resource", "TypedLocalObjectReference"), 4: ("service", "IngressServiceBackend")},
    "IngressServiceBackend": {1: ("name", "string"), 2: ("port", "ServiceBackendPort")},
    "ServiceBackendPort": {1: ("name", "string"), 2: ("number", "int")},
    "TypedLocalObjectReference": {1: ("apiGroup", "string"), 2: ("kind", "string"), 3: ("name", "string")},
    "TokenRequest": {1: ("metadata", "ObjectMeta"), 2: ("spec", "TokenRequestSpec")},
    "TokenRequestSpec": {
        1: ("audiences", "*string"),
        3: ("boundObjectRef", "BoundObjectReference"),
        4: ("expirationSeconds", "int"),
    },
    "BoundObjectReference": {
        1: ("kind", "string"),
        2: ("apiVersion", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
    },
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"),
        2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "bool"),
        4: ("propagationPolicy", "string"),
        5: ("dryRun", "*string"),
    },
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
    "Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions")},
    "SelfSubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "AccessSpec")},
    "SelfSubjectReview": {1: ("metadata", "ObjectMeta")},
    "SelfSubjectRulesReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "RulesSpec")},
    "SubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "SubjectAccessSpec")},
    "SubjectAccessSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "PathAttributes"),
        3: ("user", "string"),
        4: ("groups", "*string"),
    },
    "RulesSpec": {1: ("namespace", "string")},
    "AccessSpec": {1: ("resourceAttributes", "ResourceAttributes"), 2: ("nonResourceAttributes", "PathAttributes")},
    "PathAttributes": {1: ("path", "string"), 2: ("verb", "string")},
    "ResourceAttributes": {
        1: ("namespace", "string"),
        2: ("verb", "string"),
        3: ("group", "string"),
        4: ("version", "string"),
        5: ("resource", "string"),
        6: ("subresource", "string"),
        7: ("name", "string"),
    },
    "Role": {1: ("metadata", "ObjectMeta"), 2: ("rules", "*PolicyRule")},
    "ClusterRole": {1: ("metadata", "ObjectMeta"), 2: ("rules", "*PolicyRule")},
    "PolicyRule": {
        1: ("verbs", "*string"),
        2: ("apiGroups", "*string"),
        3: ("resources", "*string"),
        4: ("resourceNames", "*string"),
        5: ("nonResourceURLs", "*string"),
    },
    "RoleBinding": {1: ("metadata", "ObjectMeta"), 2: ("subjects", "*Subject"), 3: ("roleRef", "RoleRef")},
    "ClusterRoleBinding": {1: ("metadata", "ObjectMeta"), 2: ("subjects", "*Subject"), 3: ("roleRef", "RoleRef")},
    "Subject": {1: ("kind", "string"), 2: ("apiGroup", "string"), 3: ("name", "string"), 4: ("namespace", "string")},
    "RoleRef": {1: ("apiGroup", "string"), 2: ("kind", "string"), 3: ("name", "string")},
    "Pod": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodSpec")},
    "Deployment": {1: ("metadata", "ObjectMeta"), 2: ("spec", "DeploymentSpec")},
    "DeploymentSpec": {
        1: ("replicas", "int"),
        2: ("selector", "LabelSelector"),
        3: ("template", "PodTemplateSpec"),
        4: ("strategy", "DeploymentStrategy"),
        6: ("revisionHistoryLimit", "int"),
    },
    "DeploymentStrategy": {1: ("type", "string")},
    "Job": {1: ("metadata", "ObjectMeta"), 2: ("spec", "JobSpec")},
    "JobSpec": {
        1: ("parallelism", "int"),
        2: ("completions", "int"),
        6: ("template", "PodTemplateSpec"),
        7: ("backoffLimit", "int"),
    },
    "LabelSelector": {1: ("matchLabels", "map:string"), 2: ("matchExpressions", "*LabelSelectorRequirement")},
    "LabelSelectorRequirement": {1: ("key", "string"), 2: ("operator", "string"), 3: ("values", "*string")},
    "PodTemplateSpec": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodSpec")},
    "PodSpec": {
        2: ("containers", "*Container"),
        3: ("restartPolicy", "string"),
        4: ("terminationGracePeriodSeconds", "int"),
        6: ("dnsPolicy", "string"),
        7: ("nodeSelector", "map:string"),
        8: ("serviceAccountName", "string"),
        10: ("nodeName", "string"),
        20: ("initContainers", "*Container"),
        22: ("tolerations", "*Toleration"),
        24: ("priorityClassName", "string"),
    },
    "Container": {
        1: ("name", "string"),
        2: ("image", "string"),
        3: ("command", "*string"),
        4: ("args", "*string"),
        6: ("ports", "*ContainerPort"),
        7: ("env", "*EnvVar"),
        8: ("resources", "ResourceRequirements"),
        14: ("imagePullPolicy", "string"),
    },
    "ContainerPort": {
        1: ("name", "string"),
        2: ("hostPort", "int"),
        3: ("containerPort", "int"),
        4: ("protocol", "string"),
    },
    "EnvVar": {1: ("name", "string"), 2: ("value", "string")},
    "ResourceRequirements": {1: ("limits", "map:quantity"), 2: ("requests", "map:quantity")},
    "Toleration": {
        1: ("key", "string"),
        2: ("operator", "string"),
        3: ("value", "string"),
        4: ("effect", "string"),
        5: ("tolerationSeconds", "int"),
    },
}


def decode(body: bytes) -> JsonObject:
    """Return the object in an envelope.

    Raises:
        ApiProblem: 400 for a body without an envelope, 415 for a type not in the table.
    """
    if not body.startswith(_MAGIC):
        raise bad_request("the body of the request does not begin with the protobuf prefix")
    api_version = kind = ""
    raw = b""
    for number, value in _fields(body[len(_MAGIC) :]):
        if number == 1:
            named = {key: bytes(part).decode() for key, part in _fields(value)}
            api_version, kind = named.get(1, ""), named.get(2, "")
        elif number == 2:  # noqa: PLR2004 -- the envelope's second field
            raw = value
    if kind not in _MESSAGES:
        raise unsupported_body(f"{CONTENT_TYPE} ({kind})")
    return {"apiVersion": api_version, "kind": kind, **_message(raw, _MESSAGES[kind])}


def _message(raw: bytes, fields: _Fields) -> JsonObject:
    found: JsonObject = {}
    for number, value in _fields(raw):
        if number not in fields:
            continue
        name, form = fields[number]
        if not name:
            found |= _value(value, form)
        elif form.startswith("map:"):
            entry = dict(_fields(value))
            found.setdefault(name, {})[bytes(entry.get(1, b"")).decode()] = _value(entry.get(2, b""), form[4:])
        elif form.startswith("*"):
            found.setdefault(name, []).append(_value(value, form[1:]))
        else:
            found[name] = _value(value, form)
    # client-go writes every field of a message, including empty ones.
    return {name: value for name, value in found.items() if value not in ("", None, {})}


def _time(raw: bytes) -> str | None:
    seconds = dict(_fields(raw)).get(1, 0)
    # A zero time is encoded as year 1, a negative varint; such a field counts as absent.
    if not isinstance(seconds, int) or not 0 < seconds < 1 << 40:
        return None
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _int_or_string(raw: bytes) -> int | str:
    """Return the value that is set: type 0 is a number (apimachinery pkg/util/intstr/generated.proto)."""
    parts = dict(_fields(raw))
    return bytes(parts.get(3, b"")).decode() if parts.get(1) else int(parts.get(2, 0))


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "string": lambda raw: bytes(raw).decode(),
    "bytes": lambda raw: base64.b64encode(raw).decode(),
    "int": int,
    "int-or-string": _int_or_string,
    "bool": bool,
    "time": _time,
    "quantity": lambda raw: bytes(dict(_fields(raw)).get(1, b"")).decode(),
}


def _value(raw: Any, form: str) -> Any:  # noqa: ANN401 -- wire value in, JSON value out
    return _SCALARS[form](raw) if form in _SCALARS else _message(raw, _MESSAGES[form])


def _fields(raw: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(raw, at)
            yield number, value
        elif wire == _BYTES:
            length, at = _varint(raw, at)
            yield number, raw[at : at + length]
            at += length
        elif wire in {_FIXED64, _FIXED32}:
            at += 8 if wire == _FIXED64 else 4
        else:
            raise bad_request(f"unknown protobuf wire type {wire}")


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(raw):
            raise bad_request("the protobuf body ends in the middle of a field")
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
