"""Validates an object before it is stored.

In scope: which rules apply to which type, and the refusal with all causes. Out of scope: the rules.

A rule is a generator of causes; its arguments are the new object and the object that it replaces, if any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.validation.access import check_binding, check_role
from gpukube_sandbox.kube.store.validation.configuration import check_config_map, check_secret
from gpukube_sandbox.kube.store.validation.coordination import check_lease
from gpukube_sandbox.kube.store.validation.custom import check_custom, check_definition
from gpukube_sandbox.kube.store.validation.deviceclaims import check_claim_template, check_device_claim
from gpukube_sandbox.kube.store.validation.devices import check_device_class, check_slice
from gpukube_sandbox.kube.store.validation.metadata import check_metadata
from gpukube_sandbox.kube.store.validation.network import check_ingress, check_service
from gpukube_sandbox.kube.store.validation.nodes import check_node
from gpukube_sandbox.kube.store.validation.pods import check_pod
from gpukube_sandbox.kube.store.validation.policy import (
    check_budget,
    check_limit_range,
    check_priority_class,
    check_quota,
    check_runtime_class,
)
from gpukube_sandbox.kube.store.validation.storage import check_claim, check_storage_class
from gpukube_sandbox.kube.store.validation.updates import check_pod_update
from gpukube_sandbox.kube.store.validation.workloads import (
    check_cron_job,
    check_daemon_set,
    check_deployment,
    check_job,
    check_replica_set,
    check_stateful_set,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

    Rule = Callable[[JsonObject, JsonObject | None], Iterator[Cause]]

RULES: Mapping[str, tuple[Rule, ...]] = {
    "ClusterRole": (check_role,),
    "ClusterRoleBinding": (check_binding,),
    "ConfigMap": (check_config_map,),
    "CronJob": (check_cron_job,),
    "CustomResourceDefinition": (check_definition,),
    "DaemonSet": (check_daemon_set,),
    "Deployment": (check_deployment,),
    "DeviceClass": (check_device_class,),
    "Ingress": (check_ingress,),
    "Job": (check_job,),
    "Lease": (check_lease,),
    "LimitRange": (check_limit_range,),
    "Node": (check_node,),
    "PersistentVolumeClaim": (check_claim,),
    "Pod": (check_pod, check_pod_update),
    "PodDisruptionBudget": (check_budget,),
    "PriorityClass": (check_priority_class,),
    "ReplicaSet": (check_replica_set,),
    "ResourceClaim": (check_device_claim,),
    "ResourceClaimTemplate": (check_claim_template,),
    "ResourceQuota": (check_quota,),
    "ResourceSlice": (check_slice,),
    "Role": (check_role,),
    "RoleBinding": (check_binding,),
    "RuntimeClass": (check_runtime_class,),
    "Secret": (check_secret,),
    "Service": (check_service,),
    "StatefulSet": (check_stateful_set,),
    "StorageClass": (check_storage_class,),
}
"""Built-in type -> its rules."""


def validate(kind: Kind, new: JsonObject, old: JsonObject | None = None, definition: JsonObject | None = None) -> None:
    """Reject an object with values that the API server does not accept.

    Args:
        kind: The object's type.
        new: The object.
        old: The object that it replaces, if any.
        definition: CustomResourceDefinition of a custom type.

    Raises:
        ApiProblem: 422, with all causes.
    """
    rules = () if kind.custom else RULES.get(kind.kind, ())
    found = [cause for rule in (check_metadata, *rules) for cause in rule(new, old)]
    if definition is not None:
        found += check_custom(new, definition, kind.version)
    causes = list(dict.fromkeys(found))
    if not causes:
        return
    texts = [f"{cause.field}: {cause.text}" for cause in causes]
    message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    name = str((new.get("metadata") or {}).get("name", ""))
    details: JsonObject = {"name": name, **({"group": kind.group} if kind.group else {}), "kind": kind.kind}
    details["causes"] = [{"reason": one.reason, "message": one.text, "field": one.field} for one in causes]
    word = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    raise ApiProblem(422, "Invalid", f'{word} "{name}" is invalid: {message}', details)
