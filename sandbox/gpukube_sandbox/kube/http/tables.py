"""The Table format that `kubectl get` requests.

In scope: the columns of each type. Out of scope: storage.

Source: docs reference/using-api/api-concepts, receiving resources as Tables; kubernetes
pkg/printers/internalversion/printers.go for columns and cells. A test compares the headers with a real API server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.objects import conditions, labels, meta, spec, status

if TYPE_CHECKING:
    from starlette.requests import Request

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject

_Read = Callable[["JsonObject"], object]
_NONE = "<none>"


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its header, how to read a cell (`None`: the age), and whether only -o wide shows it."""

    head: str
    read: _Read | None
    wide: bool = False


def is_requested(request: Request) -> bool:
    """Return whether the client requests a Table."""
    return "as=Table" in request.headers.get("accept", "") and "g=meta.k8s.io" in request.headers.get("accept", "")


def _node_state(node: JsonObject) -> str:
    ready = {"True": "Ready", "False": "NotReady"}.get(conditions(node).get("Ready", ""), "NotReady")
    return ready + (",SchedulingDisabled" if spec(node).get("unschedulable") else "")


def _containers(pod: JsonObject) -> list[JsonObject]:
    return list(status(pod).get("containerStatuses") or ())


def _pod_state(pod: JsonObject) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for item in status(pod).get("initContainerStatuses") or ():
        waiting = (item.get("state") or {}).get("waiting")
        if waiting and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
    for item in _containers(pod):
        state = item.get("state") or {}
        if "waiting" in state:
            return str(state["waiting"]["reason"])
        if "terminated" in state:
            return str(state["terminated"]["reason"])
    return str(status(pod).get("reason") or status(pod).get("phase", ""))


def _pod_ready(pod: JsonObject) -> str:
    states = _containers(pod)
    total = len(spec(pod).get("containers") or ())
    return f"{sum(bool(item.get('ready')) for item in states)}/{total}"


def _at(*path: str, absent: object = _NONE) -> _Read:
    """Return a reader of the cell at a path; it reads an absent or empty value as `absent`."""

    def read(obj: JsonObject) -> object:
        value: object = obj
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        return absent if value is None or value == "" else value

    return read


def _number(*path: str) -> _Read:
    return _at(*path, absent=0)


def _pairs(found: object) -> str:
    return (
        ",".join(f"{key}={value}" for key, value in sorted(found.items()))
        if isinstance(found, dict) and found
        else _NONE
    )


def _selector(*path: str) -> _Read:
    """Return a reader of a label selector, or of a plain map, in kubectl's notation."""
    read = _at(*path)

    def written(obj: JsonObject) -> str:
        found = read(obj)
        if not isinstance(found, dict) or not {"matchLabels", "matchExpressions"} & set(found):
            return _pairs(found)
        parts = [f"{key}={value}" for key, value in sorted((found.get("matchLabels") or {}).items())]
        for rule in found.get("matchExpressions") or ():
            key, values = rule["key"], ",".join(sorted(rule.get("values") or ()))
            forms = {"Exists": key, "DoesNotExist": f"!{key}", "In": f"{key} in ({values})"}
            parts.append(forms.get(rule["operator"], f"{key} notin ({values})"))
        return ",".join(parts) or _NONE

    return written


def _restarts(pod: JsonObject) -> object:
    return sum(item.get("restartCount", 0) for item in _containers(pod))


def _roles(node: JsonObject) -> str:
    found = [key.split("/", 1)[1] for key in labels(node) if key.startswith("node-role.kubernetes.io/")]
    return ",".join(sorted(found)) or _NONE


def _address(kind: str) -> _Read:
    return lambda node: next(
        (item["address"] for item in status(node).get("addresses") or () if item["type"] == kind), _NONE
    )


def _of_containers(field: str) -> _Read:
    def read(obj: JsonObject) -> str:
        template = (spec(obj).get("jobTemplate") or {}).get("spec", spec(obj)).get("template") or {}
        return ",".join(item.get(field, "") for item in spec(template).get("containers") or ())

    return read


def _service_ports(service: JsonObject) -> str:
    ports = spec(service).get("ports") or ()
    numbers = [":".join(str(port[key]) for key in ("port", "nodePort") if port.get(key)) for port in ports]
    shown = [f"{number}/{port.get('protocol', 'TCP')}" for number, port in zip(numbers, ports, strict=True)]
    return ",".join(shown) or _NONE


def _external(service: JsonObject) -> str:
    if spec(service).get("type") == "ExternalName":
        return str(spec(service).get("externalName", ""))
    balancer = [
        item.get("ip") or item.get("hostname")
        for item in (status(service).get("loadBalancer") or {}).get("ingress") or ()
    ]
    found = [*balancer, *(spec(service).get("externalIPs") or ())]
    return ",".join(found) or ("<pending>" if spec(service).get("type") == "LoadBalancer" else _NONE)


def _endpoints(obj: JsonObject) -> str:
    return (
        ",".join(
            f"{address['ip']}:{port['port']}"
            for subset in obj.get("subsets") or ()
            for address in subset.get("addresses") or ()
            for port in subset.get("ports") or ()
        )
        or _NONE
    )


def _job_state(job: JsonObject) -> str:
    true = {kind for kind, value in conditions(job).items() if value == "True"}
    named = (
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
    )
    return next((shown for kind, shown in named if kind in true), "Running")


def _completions(job: JsonObject) -> str:
    done, parallel = status(job).get("succeeded", 0), int(spec(job).get("parallelism") or 0)
    if spec(job).get("completions") is not None:
        return f"{done}/{spec(job)['completions']}"
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(job: JsonObject) -> str:
    begun, ended = status(job).get("startTime"), status(job).get("completionTime")
    return human(_seconds(ended) - _seconds(begun)) if begun and ended else ""


def _quota(prefix: str) -> _Read:
    def read(quota: JsonObject) -> str:
        hard, used = status(quota).get("hard") or {}, status(quota).get("used") or {}
        names = [name for name in sorted(hard) if name.startswith("limits.") == (prefix == "limits")]
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return read


def _subjects(kind: str) -> _Read:
    def read(binding: JsonObject) -> str:
        found = [item for item in binding.get("subjects") or () if item.get("kind") == kind]
        account = kind == "ServiceAccount"
        return ", ".join(f"{item.get('namespace', '')}/{item['name']}" if account else item["name"] for item in found)

    return read


def _role_of(binding: JsonObject) -> str:
    return f"{binding['roleRef']['kind']}/{binding['roleRef']['name']}"


def _controller(obj: JsonObject) -> str:
    owner = next((item for item in meta(obj).get("ownerReferences") or () if item.get("controller")), None)
    if not owner:
        return _NONE
    group = owner["apiVersion"].rpartition("/")[0]
    return f"{owner['kind'].lower()}{'.' if group else ''}{group}/{owner['name']}"


def _event_object(event: JsonObject) -> str:
    about = event.get("involvedObject") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_source(event: JsonObject) -> str:
    source = event.get("source") or {}
    return ", ".join(filter(None, (source.get("component") or event.get("reportingComponent"), source.get("host"))))


def _api_service(obj: JsonObject) -> str:
    service = spec(obj).get("service")
    return f"{service['namespace']}/{service['name']}" if service else "Local"


def _ingress_hosts(obj: JsonObject) -> str:
    return ",".join(rule["host"] for rule in spec(obj).get("rules") or () if rule.get("host")) or "*"


_AGE = _Column("Age", None)
_CREATED = _Column("Created At", _at("metadata", "creationTimestamp"))
_TEMPLATE = (
    _Column("Containers", _of_containers("name"), wide=True),
    _Column("Images", _of_containers("image"), wide=True),
)
_SELECTOR = _Column("Selector", _selector("spec", "selector"), wide=True)
_BINDING = (
    _Column("Role", _role_of),
    _AGE,
    _Column("Users", _subjects("User"), wide=True),
    _Column("Groups", _subjects("Group"), wide=True),
    _Column("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)
_REPLICAS = (
    _Column("Desired", _number("spec", "replicas")),
    _Column("Current", _number("status", "replicas")),
    _Column("Ready", _number("status", "readyReplicas")),
    _AGE,
    *_TEMPLATE,
    _SELECTOR,
)


def _param_kind(obj: JsonObject) -> str:
    kind = spec(obj).get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>"


def _param_ref(obj: JsonObject) -> str:
    reference = spec(obj).get("paramRef") or {}
    return f"{reference.get('namespace') or '*'}/{reference['name']}" if reference.get("name") else "<unset>"


def _claim_state(obj: JsonObject) -> str:
    words = ["deleted"] if meta(obj).get("deletionTimestamp") else []
    if status(obj).get("allocation"):
        words += ["allocated", *(["reserved"] if status(obj).get("reservedFor") else [])]
    return ",".join(words) or "pending"


def _ready_of(obj: JsonObject) -> str:
    return f"{status(obj).get('readyReplicas', 0)}/{spec(obj).get('replicas', 1)}"


_COLUMNS: dict[str, tuple[_Column, ...]] = {
    "APIService": (
        _Column("Service", _api_service),
        _Column("Available", lambda obj: conditions(obj).get("Available", "Unknown")),
        _AGE,
    ),
    "ClusterRole": (_CREATED,),
    "ClusterRoleBinding": _BINDING,
    "ConfigMap": (_Column("Data", lambda obj: len(obj.get("data") or ()) + len(obj.get("binaryData") or ())), _AGE),
    "ControllerRevision": (_Column("Controller", _controller), _Column("Revision", _number("revision")), _AGE),
    "CronJob": (
        _Column("Schedule", _at("spec", "schedule")),
        _Column("Timezone", _at("spec", "timeZone")),
        _Column("Suspend", lambda obj: str(bool(spec(obj).get("suspend")))),
        _Column("Active", lambda obj: len(status(obj).get("active") or ())),
        _Column("Last Schedule", _at("status", "lastScheduleTime")),
        _AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    "CustomResourceDefinition": (_CREATED,),
    "DaemonSet": (
        _Column("Desired", _number("status", "desiredNumberScheduled")),
        _Column("Current", _number("status", "currentNumberScheduled")),
        _Column("Ready", _number("status", "numberReady")),
        _Column("Up-to-date", _number("status", "updatedNumberScheduled")),
        _Column("Available", _number("status", "numberAvailable")),
        _Column("Node Selector", _selector("spec", "template", "spec", "nodeSelector")),
        _AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    "Deployment": (
        _Column("Ready", _ready_of),
        _Column("Up-to-date", _number("status", "updatedReplicas")),
        _Column("Available", _number("status", "availableReplicas")),
        _AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    "Endpoints": (_Column("Endpoints", _endpoints), _AGE),
    "Event": (
        _Column("Last Seen", _at("lastTimestamp")),
        _Column("Type", _at("type")),
        _Column("Reason", _at("reason")),
        _Column("Object", _event_object),
        _Column("Subobject", _at("involvedObject", "fieldPath", absent=""), wide=True),
        _Column("Source", _event_source, wide=True),
        _Column("Message", _at("message", absent="")),
        _Column("First Seen", _at("firstTimestamp"), wide=True),
        _Column("Count", _at("count", absent=1), wide=True),
        _Column("Name", _at("metadata", "name"), wide=True),
    ),
    "Ingress": (
        _Column("Class", _at("spec", "ingressClassName")),
        _Column("Hosts", _ingress_hosts),
        _Column("Address", lambda _: ""),
        _Column("Ports", lambda obj: "80, 443" if spec(obj).get("tls") else "80"),
        _AGE,
    ),
    "Job": (
        _Column("Status", _job_state),
        _Column("Completions", _completions),
        _Column("Duration", _duration),
        _AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    "Lease": (_Column("Holder", _at("spec", "holderIdentity", absent="")), _AGE),
    "LimitRange": (_CREATED,),
    "Namespace": (_Column("Status", _at("status", "phase")), _AGE),
    "NetworkPolicy": (_Column("Pod-Selector", _selector("spec", "podSelector")), _AGE),
    "Node": (
        _Column("Status", _node_state),
        _Column("Roles", _roles),
        _AGE,
        _Column("Version", _at("status", "nodeInfo", "kubeletVersion", absent="")),
        _Column("Internal-IP", _address("InternalIP"), wide=True),
        _Column("External-IP", _address("ExternalIP"), wide=True),
        _Column("OS-Image", _at("status", "nodeInfo", "osImage", absent="<unknown>"), wide=True),
        _Column("Kernel-Version", _at("status", "nodeInfo", "kernelVersion", absent="<unknown>"), wide=True),
        _Column(
            "Container-Runtime", _at("status", "nodeInfo", "containerRuntimeVersion", absent="<unknown>"), wide=True
        ),
    ),
    "PersistentVolume": (
        _Column("Capacity", _at("spec", "capacity", "storage", absent="")),
        _Column("Access Modes", lambda obj: ",".join(spec(obj).get("accessModes") or ())),
        _Column("Reclaim Policy", _at("spec", "persistentVolumeReclaimPolicy", absent="")),
        _Column("Status", _at("status", "phase", absent="")),
        _Column("Claim", _at("spec", "claimRef", "name", absent="")),
        _Column("StorageClass", _at("spec", "storageClassName", absent="")),
        _Column("VolumeAttributesClass", _at("spec", "volumeAttributesClassName", absent="<unset>")),
        _Column("Reason", _at("status", "reason", absent="")),
        _AGE,
        _Column("VolumeMode", _at("spec", "volumeMode", absent="<unset>"), wide=True),
    ),
    "PersistentVolumeClaim": (
        _Column("Status", _at("status", "phase", absent="")),
        _Column("Volume", _at("spec", "volumeName", absent="")),
        _Column("Capacity", _at("status", "capacity", "storage", absent="")),
        _Column("Access Modes", lambda obj: ",".join(status(obj).get("accessModes") or ())),
        _Column("StorageClass", _at("spec", "storageClassName", absent="")),
        _Column("VolumeAttributesClass", _at("spec", "volumeAttributesClassName", absent="<unset>")),
        _AGE,
        _Column("VolumeMode", _at("spec", "volumeMode", absent="<unset>"), wide=True),
    ),
    "Pod": (
        _Column("Ready", _pod_ready),
        _Column("Status", _pod_state),
        _Column("Restarts", _restarts),
        _AGE,
        _Column("IP", _at("status", "podIP"), wide=True),
        _Column("Node", _at("spec", "nodeName"), wide=True),
        _Column("Nominated Node", _at("status", "nominatedNodeName"), wide=True),
        _Column("Readiness Gates", lambda _: _NONE, wide=True),
    ),
    "PodDisruptionBudget": (
        _Column("Min Available", _at("spec", "minAvailable", absent="N/A")),
        _Column("Max Unavailable", _at("spec", "maxUnavailable", absent="N/A")),
        _Column("Allowed Disruptions", _number("status", "disruptionsAllowed")),
        _AGE,
    ),
    "PriorityClass": (
        _Column("Value", _number("value")),
        _Column("Global-Default", lambda obj: str(bool(obj.get("globalDefault"))).lower()),
        _AGE,
        _Column("PreemptionPolicy", _at("preemptionPolicy", absent="PreemptLowerPriority")),
    ),
    "ReplicaSet": _REPLICAS,
    "ReplicationController": _REPLICAS,
    "ResourceClaim": (_Column("State", _claim_state), _AGE),
    "ResourceQuota": (_Column("Request", _quota("requests")), _Column("Limit", _quota("limits")), _AGE),
    "ResourceSlice": (
        _Column("Node", _at("spec", "nodeName", absent="")),
        _Column("Driver", _at("spec", "driver", absent="")),
        _Column("Pool", _at("spec", "pool", "name", absent="")),
        _AGE,
    ),
    "Role": (_CREATED,),
    "RoleBinding": _BINDING,
    "RuntimeClass": (_Column("Handler", _at("handler", absent="")), _AGE),
    "Secret": (_Column("Type", _at("type", absent="")), _Column("Data", lambda obj: len(obj.get("data") or ())), _AGE),
    "Service": (
        _Column("Type", _at("spec", "type")),
        _Column("Cluster-IP", _at("spec", "clusterIP")),
        _Column("External-IP", _external),
        _Column("Port(s)", _service_ports),
        _AGE,
        _Column("Selector", _selector("spec", "selector"), wide=True),
    ),
    "StatefulSet": (_Column("Ready", _ready_of), _AGE, *_TEMPLATE),
    "StorageClass": (
        _Column("Provisioner", _at("provisioner", absent="")),
        _Column("ReclaimPolicy", _at("reclaimPolicy", absent="Delete")),
        _Column("VolumeBindingMode", _at("volumeBindingMode", absent="Immediate")),
        _Column("AllowVolumeExpansion", lambda obj: str(bool(obj.get("allowVolumeExpansion"))).lower()),
        _AGE,
    ),
    "ValidatingAdmissionPolicy": (
        _Column("Validations", lambda obj: len(spec(obj).get("validations") or ())),
        _Column("ParamKind", _param_kind),
        _AGE,
    ),
    "ValidatingAdmissionPolicyBinding": (
        _Column("PolicyName", _at("spec", "policyName", absent="")),
        _Column("ParamRef", _param_ref),
        _AGE,
    ),
    **{
        kind: tuple(_AGE if head == "Age" else _Column(head, _at()) for head in heads.split())
        for kind, heads in (
            ("CertificateSigningRequest", "Age SignerName Requestor RequestedDuration Condition"),
            ("ComponentStatus", "Status Message Error"),
            ("EndpointSlice", "AddressType Ports Endpoints Age"),
            ("HorizontalPodAutoscaler", "Reference Targets MinPods MaxPods Replicas Age"),
            ("MutatingWebhookConfiguration", "Webhooks Age"),
            ("ValidatingWebhookConfiguration", "Webhooks Age"),
        )
    },  # the sandbox never has objects of these types
}
"""Kind -> its columns after the name; other kinds show their age only."""
_NAMELESS = frozenset({"Event"})
"""Kinds whose name is a separate column of -o wide."""


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def human(seconds: float) -> str:
    """Format a duration like kubectl.

    Source:
        k8s.io/apimachinery pkg/util/duration, HumanDuration.
    """
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    for below, text in (
        (120, f"{whole}s"),
        (600, f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"),
        (3 * 3600, f"{minutes}m"),
        (8 * 3600, f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"),
        (2 * 86400, f"{hours}h"),
        (8 * 86400, f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"),
    ):
        if whole < below:
            return text
    return f"{days}d"


def _custom_columns(definition: JsonObject | None, version: str) -> tuple[_Column, ...]:
    """Return the columns of a custom type; of JSONPath, only plain field paths are supported."""
    versions = spec(definition or {}).get("versions") or ()
    found = next((item.get("additionalPrinterColumns") for item in versions if item["name"] == version), None)
    return tuple(
        _Column(
            item["name"],
            None if item.get("type") == "date" else _at(*item["jsonPath"].strip(".").split("."), absent=""),
            wide=bool(item.get("priority")),
        )
        for item in found or ()
    )


@dataclass(frozen=True, slots=True)
class TableForm:
    """How to format tables of a type.

    Attributes:
        kind: The type.
        definition: CustomResourceDefinition of a custom type.
        now: Sandbox time, for ages.
        include: Part of the object that a row includes: "Metadata", "Object", or "None".
    """

    kind: Kind
    definition: JsonObject | None
    now: float
    include: str

    @property
    def _columns(self) -> tuple[_Column, ...]:
        if self.kind.custom:
            return _custom_columns(self.definition, self.kind.version) or (_AGE,)
        return _COLUMNS.get(self.kind.kind, (_AGE,))

    def table(self, objects: list[JsonObject], version: str = "", **more: object) -> JsonObject:
        """Format objects as a Table.

        Args:
            objects: The rows.
            version: resourceVersion of the list; defaults to that of the single object.
            more: Further metadata of a list.
        """
        named = self.kind.kind not in _NAMELESS
        heads = [{"name": "Name", "type": "string", "format": "name", "priority": 0, "description": ""}] * named
        heads += [
            {
                "name": column.head,
                "type": "string",
                "format": "name" if column.head == "Name" else "",
                "priority": int(column.wide),
                "description": "",
            }
            for column in self._columns
        ]
        listed = {"resourceVersion": version or (objects[0]["metadata"]["resourceVersion"] if objects else "")} | more
        rows = [
            {"cells": [*[name for name in (obj["metadata"]["name"],) if named], *self._cells(obj)]} | self._object(obj)
            for obj in objects
        ]
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": listed,
            "columnDefinitions": heads,
            "rows": rows,
        }

    def event(self, event: JsonObject) -> JsonObject:
        """Format a watch event's object as a Table of one row; bookmarks stay unchanged."""
        if event["type"] == "BOOKMARK":
            return event
        return {"type": event["type"], "object": self.table([event["object"]])}

    def _cells(self, obj: JsonObject) -> list[object]:
        cells = []
        for column in self._columns:
            value = (
                column.read(obj) if column.read else human(self.now - _seconds(obj["metadata"]["creationTimestamp"]))
            )
            is_past = column.head in {"Last Seen", "First Seen", "Last Schedule"} and value != _NONE
            cells.append(human(self.now - _seconds(str(value))) if is_past else value)
        return cells

    def _object(self, obj: JsonObject) -> JsonObject:
        if self.include == "None":
            return {"object": None}
        if self.include == "Object":
            return {"object": obj}
        bare = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
        return {"object": bare}
